mod basics;
mod crashes;
mod limits;
mod repeated;
