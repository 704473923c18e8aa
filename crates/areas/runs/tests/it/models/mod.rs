//! Model servers: what is sent to them, and what is made of their answers.

mod answers;
mod numbers;
pub mod openai;
