DROP TABLE room_trials;
