//! Restrictions of an answer: no numbers that are not in the conversation, and no calls if none is allowed.
//!
//! A model of this size invents prices and amounts as easily as it copies them. So after a tool has returned a
//! result, the answer may only contain numbers of the conversation.

use std::collections::HashSet;

use crate::types::{Message, Role};

/// Checks a text against the known numbers.
pub(crate) struct Guard {
    /// The allowed numbers; `None` allows all.
    numbers: Option<HashSet<String>>,
}

impl Guard {
    /// Creates a guard for the answer to these messages.
    pub(crate) fn of(messages: &[Message]) -> Self {
        let asked = messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
        let looked_up = messages.iter().skip(asked).any(|message| message.role == Role::Tool);
        let numbers = looked_up.then(|| {
            let texts = messages.iter().map(|message| message.content.as_str());
            texts.flat_map(runs).flat_map(spellings).collect()
        });
        Self { numbers }
    }

    /// Returns whether `piece` may follow `text`.
    pub(crate) fn allows(&self, text: &str, piece: &[u8]) -> bool {
        let Ok(piece) = std::str::from_utf8(piece) else { return true };
        // As in the grammar of free answers, only a call begins with `<`. A result is to be told, not put into a code
        // block.
        let begins = text.trim().is_empty().then(|| piece.trim_start().chars().next()).flatten();
        if begins == Some('<') || (begins == Some('`') && self.numbers.is_some()) {
            return false;
        }
        let begun = text.len() - unfinished(text).len();
        let tail = format!("{}{piece}", text.get(begun..).unwrap_or_default());
        let open = unfinished(&tail);
        let closed = tail.get(..tail.len() - open.len()).unwrap_or_default();
        runs(closed).all(|run| self.knows(run)) && (open.is_empty() || self.may_become_known(open))
    }

    /// Returns whether the answer may end with `text`.
    pub(crate) fn may_end(&self, text: &str) -> bool {
        runs(unfinished(text)).all(|run| self.knows(run))
    }

    fn knows(&self, run: &str) -> bool {
        self.numbers.as_ref().is_none_or(|numbers| numbers.contains(run))
    }

    fn may_become_known(&self, open: &str) -> bool {
        let Some(numbers) = &self.numbers else { return true };
        let complete = runs(open).all(|run| numbers.contains(run));
        complete || numbers.iter().any(|number| number.starts_with(open))
    }
}

fn is_part(letter: char) -> bool {
    letter.is_ascii_digit() || is_inside(letter)
}

/// Returns whether a character can occur between digits of a number, a price or a time.
fn is_inside(letter: char) -> bool {
    matches!(letter, '.' | ',' | ':')
}

/// Returns the incomplete number at the end of a text.
fn unfinished(text: &str) -> &str {
    let before = text.trim_end_matches(is_part);
    text.get(before.len()..).unwrap_or_default().trim_start_matches(is_inside)
}

/// Returns the numbers in a text.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter| !is_part(letter)).map(|run| run.trim_matches(is_inside)).filter(|run| !run.is_empty())
}

/// Returns the forms in which a number may be repeated: also with a decimal comma, and with both decimals of a price.
fn spellings(run: &str) -> Vec<String> {
    let mut all = vec![run.to_owned()];
    if let Some((whole, decimals)) = run.split_once('.')
        && decimals.bytes().all(|byte| byte.is_ascii_digit())
    {
        let padded = format!("{decimals:0<2}");
        for decimals in [decimals, padded.as_str()] {
            all.push(format!("{whole}.{decimals}"));
            all.push(format!("{whole},{decimals}"));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard(result: &str) -> Guard {
        let messages = [
            Message::new(Role::System, "Open from 9:00."),
            Message::new(Role::User, "How much is it?"),
            Message::new(Role::Tool, result),
        ];
        Guard::of(&messages)
    }

    /// Returns whether a text can be written in pieces of `size` bytes.
    fn writes(guard: &Guard, text: &str, size: usize) -> bool {
        let mut written = String::new();
        for piece in text.as_bytes().chunks(size) {
            if !guard.allows(&written, piece) {
                return false;
            }
            written.push_str(std::str::from_utf8(piece).unwrap());
        }
        guard.may_end(&written)
    }

    #[test]
    fn numbers_are_those_of_the_conversation() {
        let guard = guard("- name: Nordic Wooden Train; price: 45.5; stock: 88");
        for size in [1, 3, 100] {
            for known in
                ["It is 45.50 EUR.", "45,5 EUR, 88 left", "88, 45.5.", "From 9:00 on.", "None.", "88"]
            {
                assert!(writes(&guard, known, size), "{known} in pieces of {size}");
            }
            for made_up in ["It is 45 EUR.", "100", "8", "45.55", "445.5", "88.5 EUR", "9:30"] {
                assert!(!writes(&guard, made_up, size), "{made_up} in pieces of {size}");
            }
        }
    }

    #[test]
    fn without_a_result_all_numbers_are_allowed() {
        let guard = Guard::of(&[Message::new(Role::User, "What is 2 times 3?")]);
        assert!(writes(&guard, "It is 6.", 1));
    }

    #[test]
    fn a_text_does_not_begin_like_a_call() {
        let guard = guard("nothing");
        for begun in ["<", "<tool", "<tool_call>{", "\n<tool_call"] {
            assert!(!guard.allows("", begun.as_bytes()), "{begun}");
        }
        assert!(
            !guard.allows("\n", b"<")
                && guard.allows("", b"Less")
                && guard.allows("a ", b"<")
                && guard.allows("", b"\n")
        );
    }
}
