mod basics;
mod limits;
mod repeated;
