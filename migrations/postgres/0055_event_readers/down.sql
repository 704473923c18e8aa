DROP TABLE event_readers;
