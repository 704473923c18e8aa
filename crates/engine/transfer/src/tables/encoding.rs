//! Detection of a file's text encoding.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use std::io::{ErrorKind, Read, Result};

/// The number of bytes used to detect the format of a file.
pub const SAMPLE: usize = 64 * 1024;

/// The number of valid multi-byte characters that outweigh one invalid byte in UTF-8. In other encodings, sequences
/// that are valid in UTF-8 are very rare.
const VALID_PER_MISTAKE: u64 = 2;

/// Detects the encoding from the first bytes, or else from the whole file. A few invalid bytes do not rule out UTF-8.
///
/// # Errors
/// Errors of the reader.
pub fn encoding(mut reader: impl Read) -> Result<&'static Encoding> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    let mut characters = Characters::default();
    let mut buffer = vec![0; SAMPLE];
    let mut is_first = true;
    loop {
        let filled = fill(&mut reader, &mut buffer)?;
        let bytes = buffer.get(..filled).unwrap_or_default();
        if is_first && let Some(known) = by_first_bytes(bytes) {
            return Ok(known);
        }
        is_first = false;
        detector.feed(bytes, filled < SAMPLE);
        characters.count(bytes);
        if filled < SAMPLE {
            let guess = || detector.guess(None, Utf8Detection::Allow);
            return Ok(if characters.are_utf8() { UTF_8 } else { guess() });
        }
    }
}

/// Reads until the buffer is full or the file ends.
pub(crate) fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match reader.read(rest) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Detects a byte order mark, or UTF-16 by its zero bytes.
fn by_first_bytes(bytes: &[u8]) -> Option<&'static Encoding> {
    if let Some((encoding, _)) = Encoding::for_bom(bytes) {
        return Some(encoding);
    }
    match files::utf16_without_mark(bytes) {
        Some(true) => Some(UTF_16LE),
        Some(false) => Some(UTF_16BE),
        None => None,
    }
}

/// Statistics about the multi-byte characters of a text, read as UTF-8.
#[derive(Debug, Default)]
struct Characters {
    valid: u64,
    mistakes: u64,
    /// An incomplete character at the end of the last chunk.
    cut: Vec<u8>,
}

impl Characters {
    fn count(&mut self, bytes: &[u8]) {
        let mut text = std::mem::take(&mut self.cut);
        text.extend_from_slice(bytes);
        let mut at = 0;
        for chunk in text.utf8_chunks() {
            let leads = chunk.valid().bytes().filter(|byte| *byte >= 0xc0).count();
            self.valid += leads as u64;
            at += chunk.valid().len() + chunk.invalid().len();
            let is_cut = at == text.len()
                && std::str::from_utf8(chunk.invalid()).is_err_and(|error| error.error_len().is_none());
            if is_cut {
                self.cut = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.mistakes += 1;
            }
        }
    }

    fn are_utf8(&self) -> bool {
        self.valid > 0 && self.valid >= self.mistakes * VALID_PER_MISTAKE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(bytes: &[u8]) -> &'static str {
        encoding(bytes).unwrap().name()
    }

    #[test]
    fn encodings_are_distinguished() {
        let utf16: Vec<u8> = "name;größe\n1;2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let utf16be: Vec<u8> = "name;größe\n1;2\n".encode_utf16().flat_map(u16::to_be_bytes).collect();
        let with_mark = [&[0xff, 0xfe][..], &utf16].concat();
        let windows = b"name,stadt\nM\xfcller,K\xf6ln\nJ\xe4ger,M\xfcnchen\n";
        let late = [vec![b'a'; SAMPLE + 10], "é".into()].concat();
        let split = [vec![b'a'; SAMPLE - 1], "éé".into()].concat();
        for (bytes, expected) in [
            (&b"a,b\n1,2\n"[..], "UTF-8"),
            ("name\né\n".as_bytes(), "UTF-8"),
            (&late, "UTF-8"),
            (&split, "UTF-8"),
            (&utf16, "UTF-16LE"),
            (&utf16be, "UTF-16BE"),
            (&with_mark, "UTF-16LE"),
            (windows, "windows-1252"),
            (b"", "UTF-8"),
        ] {
            assert_eq!(name(bytes), expected, "{:?}", String::from_utf8_lossy(bytes).get(..20));
        }
    }

    #[test]
    fn a_few_wrong_bytes_leave_a_text_utf_8() {
        let good = "name,city\n".to_owned() + &"José,São Paulo\n".repeat(40);
        for tail in [&b"it\x92s,Bogot\xc3\xa1\n"[..], b"Ana,Bogot\xc3", b"\xff\xfe\n", b"a\x80\x80b\n"] {
            assert_eq!(name(&[good.as_bytes(), tail].concat()), "UTF-8", "{tail:?}");
        }
        // Each chunk contains an invalid byte, and its end cuts off a character.
        let long: Vec<u8> =
            (0..9).flat_map(|_| [good.repeat(100).into_bytes(), b"\xe9t\xe9\n".to_vec()].concat()).collect();
        assert_eq!(name(&long), "UTF-8");
    }

    #[test]
    fn other_encodings_are_not_taken_for_utf_8() {
        for (label, text) in [
            ("windows-1252", "nombre,ciudad\nJosé Núñez,Málaga\nIñaki,Cádiz\nBegoña Ibáñez,León\n"),
            ("windows-1250", "jméno,město\nŽofie Dvořáková,Plzeň\nJiří Novák,Ústí nad Labem\nŠárka,Brno\n"),
            ("windows-1251", "имя,город\nАнна Петрова,Москва\nИван Сидоров,Казань\nОльга,Тверь\n"),
            ("Shift_JIS", "名前,都市\n山田太郎,東京都\n鈴木花子,大阪市\n佐藤次郎,名古屋市\n"),
            ("EUC-KR", "이름,도시\n김철수,서울특별시\n이영희,부산광역시\n박민수,대구광역시\n"),
            ("GBK", "姓名,城市\n王小明,北京市\n李小红,上海市\n张伟,广州市\n"),
        ] {
            let (bytes, _, _) = Encoding::for_label(label.as_bytes()).unwrap().encode(text);
            assert_eq!(name(&bytes.repeat(5)), label);
        }
    }
}
