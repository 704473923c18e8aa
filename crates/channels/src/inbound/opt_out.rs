//! Words with which contacts say that they want no marketing messages, or want them again.

/// A whole message that is one of these, in any case and with or without accents, opts out.
const OUT: [&str; 18] = [
    "stop",
    "stopall",
    "unsubscribe",
    "cancel",
    "end",
    "quit",
    "optout",
    "opt out",
    "parar",
    "pare",
    "sair",
    "cancelar",
    "descadastrar",
    "baja",
    "alto",
    "detener",
    "arret",
    "desabonner",
];

/// A whole message that is one of these opts in again.
const IN: [&str; 9] =
    ["start", "unstop", "subscribe", "optin", "opt in", "voltar", "iniciar", "alta", "reprendre"];

/// What a message says about marketing messages: `Some(true)` that they are wanted. A sentence that contains such a word
/// says nothing.
pub(super) fn said(text: &str, also_out: &[String]) -> Option<bool> {
    let said = folded(text);
    if said.is_empty() {
        return None;
    }
    let is_out = OUT.contains(&said.as_str()) || also_out.iter().any(|word| folded(word) == said);
    if is_out {
        return Some(false);
    }
    IN.contains(&said.as_str()).then_some(true)
}

/// Without case, accents, and what stands around the words.
fn folded(text: &str) -> String {
    let folded = fields::text::ascii(&fields::text::fold(text));
    folded.trim_matches(|letter: char| !letter.is_alphanumeric()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn only_whole_messages_opt_out() {
        for text in ["STOP", " stop. ", "Stop!", "ARRÊT", "Baja", "opt out"] {
            assert_eq!(said(text, &[]), Some(false), "{text}");
        }
        for text in ["please stop", "stop it now", "", "!", "nonstop", "End of the road"] {
            assert_eq!(said(text, &[]), None, "{text}");
        }
        assert_eq!(said("START", &[]), Some(true));
        assert_eq!(said("Não quero", &["nao quero".to_owned()]), Some(false));
    }
}
