//! What a worker tells about a call's end.

use crate::call::{BadOutput, Failure};
use crate::wire::{Writer, to_parent};

/// Codes of failures on the wire.
pub mod code {
    pub const COMPILE: u8 = 1;
    pub const NO_DEFAULT_EXPORT: u8 = 2;
    pub const DEFAULT_IS_NO_FUNCTION: u8 = 3;
    pub const THROWN: u8 = 4;
    pub const NEVER_SETTLES: u8 = 5;
    pub const TIMEOUT: u8 = 6;
    pub const MEMORY: u8 = 7;
    pub const STACK: u8 = 8;
    pub const OUTPUT: u8 = 9;
}

/// The longest name, message and stack of an error, in characters.
pub const LONGEST_NAME: usize = 100;
/// See [`LONGEST_NAME`].
pub const LONGEST_MESSAGE: usize = 500;
/// See [`LONGEST_NAME`].
pub const LONGEST_STACK: usize = 2_000;
/// The longest message of a failure on the wire, in bytes.
pub const LONGEST_FAILURE: usize = 16 << 10;

/// The message of a result.
pub fn done(peak: usize, output: &str) -> Vec<u8> {
    Writer::new(to_parent::DONE).u64(number(peak)).text(output).finish()
}

/// The message of a failure.
pub fn failed(peak: usize, failure: &Failure) -> Vec<u8> {
    let message = Writer::new(to_parent::FAILED).u64(number(peak));
    match failure {
        Failure::Compile { message: text, line, column } => {
            message.u8(code::COMPILE).text(&cut(text, LONGEST_MESSAGE)).u32(*line).u32(*column)
        }
        Failure::NoDefaultExport => message.u8(code::NO_DEFAULT_EXPORT),
        Failure::DefaultIsNoFunction => message.u8(code::DEFAULT_IS_NO_FUNCTION),
        Failure::Thrown { name, message: text, stack, retry_after } => message
            .u8(code::THROWN)
            .text(&cut(name, LONGEST_NAME))
            .text(&cut(text, LONGEST_MESSAGE))
            .text(&cut(stack, LONGEST_STACK))
            .u8(u8::from(retry_after.is_some()))
            .u64(retry_after.unwrap_or(0)),
        Failure::NeverSettles => message.u8(code::NEVER_SETTLES),
        Failure::Timeout => message.u8(code::TIMEOUT),
        Failure::Memory => message.u8(code::MEMORY),
        Failure::Stack => message.u8(code::STACK),
        Failure::Output(why) => {
            let place = BadOutput::ALL.iter().position(|one| one == why).unwrap_or(0);
            message.u8(code::OUTPUT).u8(u8::try_from(place).unwrap_or(0))
        }
        // Only the parent finds these.
        Failure::Crashed | Failure::Protocol => message.u8(0),
    }
    .finish()
}

fn number(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// At most `limit` characters of a text.
pub fn cut(text: &str, limit: usize) -> String {
    text.chars().take(limit).collect()
}

/// The failure `memory` as bytes, for the moment when no memory is left.
pub const OUT_OF_MEMORY: [u8; 14] = [10, 0, 0, 0, to_parent::FAILED, 0, 0, 0, 0, 0, 0, 0, 0, code::MEMORY];
