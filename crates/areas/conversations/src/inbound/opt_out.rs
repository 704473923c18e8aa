//! Words with which contacts say that they want no marketing messages, or want them again.

/// A whole message that is one of these, in any case and with or without accents, opts out.
const OUT: &[&str] = &[
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
    // The network's own button below marketing templates, in the languages of templates.
    "stop promotions",
    "detener promociones",
    "parar promocoes",
    "interromper promocoes",
    "arreter les promotions",
    "arreter promotions",
    "werbung stoppen",
    "angebote stoppen",
    "interrompi promozioni",
    "stop promozioni",
    "stop promoties",
    "promoties stoppen",
    "hentikan promosi",
    "остановить рекламу",
];

/// A whole message that is one of these opts in again.
const IN: &[&str] =
    &["start", "unstop", "subscribe", "optin", "opt in", "voltar", "iniciar", "alta", "reprendre"];

/// Words that stand on buttons of menus too, where they cancel an order, go back, or begin something.
const MENU: &[&str] =
    &["cancel", "cancelar", "end", "quit", "sair", "alto", "start", "iniciar", "voltar", "alta", "subscribe"];

/// What a button or row that a contact chose says about marketing messages, by its title. Only what can mean nothing else
/// counts: a contact that cancels an order has not opted out.
pub(super) fn of_button(title: &str, also_out: &[String]) -> Option<bool> {
    let title_folded = folded(title);
    let is_own = also_out.iter().any(|word| folded(word) == title_folded);
    of_text(title, also_out).filter(|_| is_own || !MENU.contains(&title_folded.as_str()))
}

/// What a message says about marketing messages: `Some(true)` that they are wanted. A sentence that contains such a word
/// says nothing.
pub(super) fn of_text(text: &str, also_out: &[String]) -> Option<bool> {
    let text = folded(text);
    if text.is_empty() {
        return None;
    }
    let is_out = OUT.contains(&text.as_str()) || also_out.iter().any(|word| folded(word) == text);
    if is_out {
        return Some(false);
    }
    IN.contains(&text.as_str()).then_some(true)
}

/// Without case, accents, hyphens, and what stands around the words.
fn folded(text: &str) -> String {
    let folded = fields::text::ascii(&fields::text::fold(text));
    folded.trim_matches(|letter: char| !letter.is_alphanumeric()).replace('-', " ")
}

#[cfg(test)]
mod tests {
    use super::{of_button, of_text};

    #[test]
    fn only_whole_messages_opt_out() {
        for text in ["STOP", " stop. ", "Stop!", "ARRÊT", "Baja", "opt out"] {
            assert_eq!(of_text(text, &[]), Some(false), "{text}");
        }
        for text in ["please stop", "stop it now", "", "!", "nonstop", "End of the road"] {
            assert_eq!(of_text(text, &[]), None, "{text}");
        }
        assert_eq!(of_text("START", &[]), Some(true));
        assert_eq!(of_text("Não quero", &["nao quero".to_owned()]), Some(false));
    }

    #[test]
    fn buttons_opt_out_where_they_mean_nothing_else() {
        for title in [
            "STOP",
            "Unsubscribe",
            "Stop promotions",
            "Detener promociones",
            "PARAR PROMOÇÕES",
            "Baja",
            "Opt-out",
        ] {
            assert_eq!(of_button(title, &[]), Some(false), "{title}");
        }
        for title in ["Cancel", "Cancelar", "Voltar", "Start", "stop-service", "Stop the machine", "Yes"] {
            assert_eq!(of_button(title, &[]), None, "{title}");
        }
        assert_eq!(of_button("Cancelar", &["CANCELAR".to_owned()]), Some(false));
    }
}
