DROP TABLE function_kv;
