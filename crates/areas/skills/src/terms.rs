//! The words by which a text is matched with skills: those of the search engine, without the endings of plurals.

use fields::FieldSet;
use fields::terms::tokens;
use fields::words::Words;

/// Words of English, German, Spanish, French and Portuguese that say nothing about a subject.
const COMMON: &str = " a about after all also am an and any are as ask at be been but by can could did do does for from get \
    had has have he her him his how i if in into is it its just me more my need needs no not of on one or our out please she \
    should so some that the their them then there they this to up use used uses using want wants was we were what when where \
    which who will with would you your aber als auch auf aus bei bin das dem den der des die ein eine einen er es fur hat ich \
    im ist mit nach nicht oder sich sie sind und von was wenn wie wir zu zum zur al como con de del el en es la las lo los mi \
    para por que se si sin su un una y au aux avec ce ces dans du elle est et il je le les mais ne nous ou par pas pour qui sa \
    ses son sur une vous ao com da do e em eu na nao nas no nos o os ou pela pelo sao sem seu sua uma ";

/// The word that both sides are compared by. `None` for a word that says nothing.
pub(crate) fn stem(word: &str) -> Option<String> {
    if word.len() < 2 || COMMON.contains(&format!(" {word} ")) {
        return None;
    }
    // Search looks for the stem of a word as the beginning of words. Here stems are compared, so `shoe` must have that of
    // `shoes`.
    let stems = Words::read(&FieldSet::new("skill", "", Vec::new()), word).stems();
    let stem = stems.and_then(|Words(clauses)| clauses.into_iter().next()?.words.into_iter().next());
    let mut stem = stem.unwrap_or_else(|| word.to_owned());
    if stem.len() > 3 && stem.ends_with('e') {
        stem.pop();
    }
    Some(stem)
}

/// The stems of a text, each once.
pub(crate) fn stems(text: &str) -> Vec<String> {
    let mut stems: Vec<String> = tokens(text).iter().filter_map(|word| stem(word)).collect();
    stems.sort_unstable();
    stems.dedup();
    stems
}

/// The terms of a skill: the stems of its names on the first line, those of its description on the second.
pub(crate) fn terms(name: &str, display_name: Option<&str>, description: &str) -> String {
    let names = stems(&format!("{name} {}", display_name.unwrap_or_default()));
    format!("{}\n{}", names.join(" "), stems(description).join(" "))
}

#[cfg(test)]
mod tests {
    use super::{stems, terms};

    #[test]
    fn terms_have_neither_endings_nor_common_words() {
        let found = terms("returns", Some("Devoluções"), "Use it when customers return the boxes.");
        assert_eq!(found, "devoluco return\nbox customer return");
        assert_eq!(stems("The Cafés, the café! A shoe, shoes; size, sizes"), ["caf", "sho", "siz"]);
    }
}
