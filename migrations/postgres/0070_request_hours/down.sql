DROP TABLE request_hours;
