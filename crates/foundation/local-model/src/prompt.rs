//! Conversion of turns to prompt tokens, within a budget.

use crate::{
    chat::Turn,
    tokenizer::Tokenizer,
    types::{Error, Role},
};

/// A tokenized turn. Header and end are separate, because only the text may be truncated.
struct Part {
    role: Role,
    header: Vec<u32>,
    text: Vec<u32>,
    end: Vec<u32>,
}

impl Part {
    fn length(&self) -> usize {
        self.header.len() + self.text.len() + self.end.len()
    }
}

/// Builds the prompt for these turns: at most `budget` tokens, ending with the header of the assistant's turn.
///
/// If the turns do not fit, these are left out in this order: turns before the last user message; turns after it; the
/// end of system turns beyond half of the budget; the start of the last user message. Before that, a tool's result is
/// truncated to half of the budget, because without the result the model could not answer.
pub(crate) fn fit(turns: &[Turn], tokenizer: &Tokenizer, budget: usize) -> Result<Vec<u32>, Error> {
    let header = |name: &str| -> Result<Vec<u32>, Error> {
        let mut header = vec![tokenizer.turn_start()];
        header.extend(tokenizer.encode(&format!("{name}\n"))?);
        Ok(header)
    };
    let mut end = vec![tokenizer.turn_end()];
    end.extend(tokenizer.encode("\n")?);
    let answer = header("assistant")?;
    let mut parts = Vec::with_capacity(turns.len());
    for turn in turns {
        let text = tokenizer.encode(&turn.text)?;
        parts.push(Part { role: turn.role, header: header(turn.name())?, text, end: end.clone() });
    }
    shorten(&mut parts, budget.saturating_sub(answer.len()));

    let mut prompt: Vec<u32> =
        parts.into_iter().flat_map(|part| part.header.into_iter().chain(part.text).chain(part.end)).collect();
    prompt.extend(answer);
    if prompt.len() > budget {
        // This happens only if the budget is smaller than the headers alone.
        return Err(Error::InvalidRequest(format!("the context leaves {budget} tokens for the prompt")));
    }
    Ok(prompt)
}

fn total(parts: &[Part]) -> usize {
    parts.iter().map(Part::length).sum()
}

fn shorten(parts: &mut Vec<Part>, budget: usize) {
    if total(parts) <= budget {
        return;
    }
    for part in parts.iter_mut().filter(|part| part.role == Role::Tool) {
        part.text.truncate(budget / 2);
    }
    while total(parts) > budget {
        let last_user = parts.iter().rposition(|part| part.role == Role::User);
        let oldest = parts
            .iter()
            .enumerate()
            .position(|(place, part)| part.role != Role::System && Some(place) != last_user);
        let Some(oldest) = oldest else { break };
        parts.remove(oldest);
    }
    // Only system turns and one user turn are left. Instructions are important at their beginning, a user's question
    // most often at its end.
    cut_system(parts, budget, budget / 2);
    let mut over = total(parts).saturating_sub(budget);
    for part in parts.iter_mut().filter(|part| part.role != Role::System) {
        let cut = over.min(part.text.len());
        part.text.drain(..cut);
        over -= cut;
    }
    // The budget is hardly larger than the headers.
    cut_system(parts, budget, 0);
}

/// Truncates system turns at the end until the budget is met, but keeps `keep` tokens of their text.
fn cut_system(parts: &mut [Part], budget: usize, keep: usize) {
    let mut over = total(parts).saturating_sub(budget);
    let mut system =
        parts.iter().filter(|part| part.role == Role::System).map(|part| part.text.len()).sum::<usize>();
    for part in parts.iter_mut().rev().filter(|part| part.role == Role::System) {
        let cut = over.min(system.saturating_sub(keep)).min(part.text.len());
        part.text.truncate(part.text.len() - cut);
        over -= cut;
        system -= cut;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::weights::Gguf;

    fn turn(role: Role, text: &str) -> Turn {
        Turn { role, text: text.into() }
    }

    /// The tiny model has one token per byte, which makes the budgets easy to read.
    fn tokenizer() -> Tokenizer {
        let (_folder, path) = crate::tiny::file();
        Tokenizer::load(&Gguf::open(&path).unwrap()).unwrap()
    }

    fn prompt(turns: &[Turn], budget: usize) -> Result<String, Error> {
        let tokenizer = tokenizer();
        let tokens = fit(turns, &tokenizer, budget)?;
        assert!(tokens.len() <= budget);
        let mut text = String::new();
        for token in tokens {
            match token {
                token if token == tokenizer.turn_start() => text.push('['),
                token if token == tokenizer.turn_end() => text.push(']'),
                token => text.push_str(std::str::from_utf8(tokenizer.bytes(token)).unwrap()),
            }
        }
        Ok(text)
    }

    #[test]
    fn keeps_everything_that_fits() {
        let turns = [turn(Role::System, "s"), turn(Role::User, "q"), turn(Role::Assistant, "a")];
        assert_eq!(prompt(&turns, 100).unwrap(), "[system\ns]\n[user\nq]\n[assistant\na]\n[assistant\n");
    }

    #[test]
    fn drops_the_oldest_turns_but_system_and_last_user() {
        let turns = [
            turn(Role::System, "s"),
            turn(Role::User, "old"),
            turn(Role::Assistant, "older answer"),
            turn(Role::User, "new"),
        ];
        assert_eq!(prompt(&turns, 45).unwrap(), "[system\ns]\n[user\nnew]\n[assistant\n");
        let turns = [turn(Role::System, "s"), turn(Role::User, "new"), turn(Role::Assistant, "calling it")];
        assert_eq!(prompt(&turns, 45).unwrap(), "[system\ns]\n[user\nnew]\n[assistant\n");
    }

    #[test]
    fn cuts_the_front_of_the_last_user_message() {
        let turns = [turn(Role::System, "s"), turn(Role::User, &"0123456789".repeat(100))];
        assert_eq!(prompt(&turns, 45).unwrap(), "[system\ns]\n[user\n567890123456789]\n[assistant\n");
    }

    #[test]
    fn cuts_the_end_of_a_huge_system_turn() {
        let turns = [turn(Role::System, &"s".repeat(500)), turn(Role::User, "question")];
        let text = prompt(&turns, 100).unwrap();
        assert!(text.starts_with("[system\ns") && text.ends_with("[user\nquestion]\n[assistant\n"), "{text}");
    }

    #[test]
    fn cuts_rather_than_drops_the_result_of_a_tool() {
        let turns = [turn(Role::System, "s"), turn(Role::User, "q"), turn(Role::Tool, &"r".repeat(500))];
        assert!(prompt(&turns, 100).unwrap().contains("\nrrrr"));
    }

    #[test]
    fn never_exceeds_the_budget() {
        let turns = [
            turn(Role::System, &"s".repeat(70)),
            turn(Role::User, &"u".repeat(70)),
            turn(Role::Assistant, &"a".repeat(70)),
            turn(Role::Tool, &"t".repeat(70)),
            turn(Role::System, &"S".repeat(70)),
        ];
        // Headers and ends of two system turns, one user turn and the answer.
        let bare = 10 + 8 + 10 + 11;
        let tokenizer = tokenizer();
        for budget in 0..400 {
            let prompt = fit(&turns, &tokenizer, budget);
            assert_eq!(prompt.is_ok(), budget >= bare, "{budget}");
            assert!(prompt.is_ok_and(|prompt| prompt.len() <= budget) || budget < bare);
        }
    }
}
