mod basics;
mod crashes;
mod limits;
mod paused;
mod repeated;
