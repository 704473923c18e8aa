//! Conversion between text and tokens, and the vocabulary for the grammar engine.

use std::{collections::HashMap, sync::Arc};

use candle_core::quantized::tokenizer::TokenizerFromGguf;
use tokenizers::pre_tokenizers::{byte_level::ByteLevel, digits::Digits, sequence::Sequence};
use toktrie::{TokEnv, TokRxInfo, TokTrie, TokenizerEnv};

use crate::{types::Error, weights::Gguf};

/// The GGUF token type "control". Control tokens are not text.
const CONTROL: i64 = 3;

/// The model's tokenizer. Text is never encoded as control tokens, so a user cannot forge turns of the conversation.
#[derive(Clone)]
pub(crate) struct Tokenizer(Arc<Inner>);

struct Inner {
    encoder: tokenizers::Tokenizer,
    trie: TokTrie,
    control: Vec<bool>,
    turn_start: u32,
    turn_end: u32,
}

impl Tokenizer {
    /// Loads the vocabulary from the file.
    pub(crate) fn load(file: &Gguf) -> Result<Self, Error> {
        let broken = |what: &str| Error::NotGguf(format!("the vocabulary {what}"));
        let kind = file.string("tokenizer.ggml.model")?;
        if kind != "gpt2" {
            return Err(Error::UnsupportedArchitecture(format!("tokenizer {kind}")));
        }
        let mut encoder = tokenizers::Tokenizer::from_gguf(&file.content)
            .map_err(|error| broken(&format!("is unreadable: {error}")))?;
        // candle does not know this variant and would use GPT-2's, which prepends a space to each text and does not
        // split numbers into digits.
        if file.string("tokenizer.ggml.pre").is_ok_and(|pre| pre == "smollm") {
            let splits = vec![Digits::new(true).into(), ByteLevel::new(false, true, true).into()];
            encoder.with_pre_tokenizer(Some(Sequence::new(splits)));
        }
        encoder.set_encode_special_tokens(true);

        let types = file.array("tokenizer.ggml.token_type")?;
        let alphabet = byte_alphabet();
        let (mut words, mut control, mut numbers) = (Vec::new(), Vec::new(), HashMap::new());
        for (number, token) in file.array("tokenizer.ggml.tokens")?.iter().enumerate() {
            let text = token.to_string().map_err(|_| broken("holds something other than text"))?;
            let is_control = types.get(number).and_then(|kind| kind.to_i64().ok()) == Some(CONTROL)
                || types.get(number).and_then(|kind| kind.to_i32().ok()) == Some(CONTROL as i32);
            words.push(if is_control {
                numbers.insert(text.as_str(), u32::try_from(number).map_err(|_| broken("is too large"))?);
                [&[TokTrie::SPECIAL_TOKEN_MARKER], text.as_bytes()].concat()
            } else {
                text.chars().map(|c| alphabet.get(&c).copied()).collect::<Option<_>>().unwrap_or_default()
            });
            control.push(is_control);
        }
        let find = |name: &str| {
            let missing =
                || Error::UnsupportedArchitecture(format!("no ChatML: the vocabulary lacks {name}"));
            numbers.get(name).copied().ok_or_else(missing)
        };
        let (turn_start, turn_end) = (find("<|im_start|>")?, find("<|im_end|>")?);
        let vocabulary = u32::try_from(words.len()).map_err(|_| broken("is too large"))?;
        let trie = TokTrie::from(&TokRxInfo::new(vocabulary, turn_end), &words);
        Ok(Self(Arc::new(Inner { encoder, trie, control, turn_start, turn_end })))
    }

    /// Returns the tokens of a text.
    pub(crate) fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        let encoding = self.0.encoder.encode_fast(text, false);
        encoding
            .map(|encoding| encoding.get_ids().to_vec())
            .map_err(|error| Error::Inference(error.to_string()))
    }

    /// Returns the bytes of a token; none for control tokens. A token can contain a part of a code point.
    pub(crate) fn bytes(&self, token: u32) -> &[u8] {
        if self.is_control(token) { &[] } else { self.0.trie.token(token) }
    }

    /// Returns whether this token ends the answer instead of adding to it.
    pub(crate) fn is_control(&self, token: u32) -> bool {
        self.0.control.get(token as usize).copied().unwrap_or(true)
    }

    /// Returns the token with exactly these bytes.
    pub(crate) fn token(&self, bytes: &[u8]) -> Option<u32> {
        self.0.trie.token_id(bytes)
    }

    /// Returns the token `<|im_start|>`.
    pub(crate) fn turn_start(&self) -> u32 {
        self.0.turn_start
    }

    /// Returns the token `<|im_end|>`.
    pub(crate) fn turn_end(&self) -> u32 {
        self.0.turn_end
    }

    /// Returns the vocabulary for grammars.
    pub(crate) fn environment(&self) -> TokEnv {
        Arc::new(self.clone())
    }
}

impl TokenizerEnv for Tokenizer {
    fn tok_trie(&self) -> &TokTrie {
        &self.0.trie
    }

    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<u32> {
        self.0.trie.tokenize_with_greedy_fallback(bytes, |text| self.encode(text).unwrap_or_default())
    }
}

/// Returns GPT-2's alphabet, which represents each byte by one printable character.
fn byte_alphabet() -> HashMap<char, u8> {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF);
    let mut substitutes = '\u{100}'..;
    (0..=u8::MAX)
        .filter_map(|byte| Some((if printable(byte) { char::from(byte) } else { substitutes.next()? }, byte)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alphabet_covers_all_bytes() {
        let alphabet = byte_alphabet();
        assert_eq!(alphabet.len(), 256);
        assert_eq!(alphabet[&'a'], b'a');
        assert_eq!(alphabet[&'Ġ'], b' ');
        assert_eq!(alphabet[&'Ċ'], b'\n');
    }

    #[test]
    fn text_is_never_read_as_control_tokens() {
        let (_folder, path) = crate::tiny::file();
        let tokenizer = Tokenizer::load(&Gguf::open(&path).unwrap()).unwrap();
        let text = "<|im_end|> 12 ü";
        let tokens = tokenizer.encode(text).unwrap();
        assert!(tokens.iter().all(|token| !tokenizer.is_control(*token)));
        let bytes: Vec<u8> = tokens.iter().flat_map(|token| tokenizer.bytes(*token)).copied().collect();
        assert_eq!(String::from_utf8(bytes).unwrap(), text);
        assert!(
            tokenizer.is_control(tokenizer.turn_end()) && tokenizer.bytes(tokenizer.turn_end()).is_empty()
        );
    }
}
