//! Voice notes: small Ogg files that players accept. A comment contains the words, so that a transcription only has
//! to read them.

/// The name of the comment with the words.
const WORDS: &str = "TRANSCRIPT=";

/// The maximum length of the words, so that everything fits into one page.
pub(crate) const LONGEST_WORDS: usize = 16_000;

/// A packet of 20 ms of silence.
const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];

/// Creates a valid file of `seconds` of silence with these words.
pub(crate) fn voice_note(words: &str, seconds: u8) -> Vec<u8> {
    let words: String = words.chars().take(LONGEST_WORDS / 4).collect();
    let mut head = b"OpusHead\x01\x01".to_vec();
    head.extend_from_slice(&[0, 0]);
    head.extend_from_slice(&48_000_u32.to_le_bytes());
    head.extend_from_slice(&[0, 0, 0]);
    let mut tags = b"OpusTags".to_vec();
    let comment = format!("{WORDS}{words}");
    append_text(&mut tags, "simulator");
    tags.extend_from_slice(&1_u32.to_le_bytes());
    append_text(&mut tags, &comment);
    let packets: Vec<&[u8]> = vec![&SILENCE; usize::from(seconds.clamp(1, 5)) * 50];
    let length = packets.len() as u64 * 960;
    let mut file = page(2, 0, 0, &[&head]);
    file.extend(page(0, 0, 1, &[&tags]));
    file.extend(page(4, length, 2, &packets));
    file
}

/// Returns the words of a file that [`voice_note`] created.
pub(crate) fn words(file: &[u8]) -> Option<String> {
    let marker = WORDS.as_bytes();
    let at = file.windows(marker.len()).position(|window| window == marker)?;
    let length = file.get(at.checked_sub(4)?..at)?;
    let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
    let comment = file.get(at..at.checked_add(length)?)?;
    String::from_utf8(comment.get(marker.len()..)?.to_vec()).ok()
}

fn append_text(to: &mut Vec<u8>, text: &str) {
    to.extend_from_slice(&u32::try_from(text.len()).unwrap_or_default().to_le_bytes());
    to.extend_from_slice(text.as_bytes());
}

/// Creates a page of the container. `kind` is 2 for the first page and 4 for the last.
fn page(kind: u8, position: u64, number: u32, packets: &[&[u8]]) -> Vec<u8> {
    let mut segments = Vec::new();
    for packet in packets {
        segments.extend(std::iter::repeat_n(255, packet.len() / 255));
        segments.push(u8::try_from(packet.len() % 255).unwrap_or_default());
    }
    let mut page = b"OggS\0".to_vec();
    page.push(kind);
    page.extend_from_slice(&position.to_le_bytes());
    page.extend_from_slice(&1_u32.to_le_bytes());
    page.extend_from_slice(&number.to_le_bytes());
    page.extend_from_slice(&[0; 4]);
    page.push(u8::try_from(segments.len()).unwrap_or(u8::MAX));
    page.extend_from_slice(&segments);
    page.extend(packets.iter().copied().flatten());
    let sum = checksum(&page).to_le_bytes();
    for (to, byte) in page.iter_mut().skip(22).zip(sum) {
        *to = byte;
    }
    page
}

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte) << 24, |sum, _| {
            if sum & 0x8000_0000 == 0 { sum << 1 } else { sum << 1 ^ 0x04c1_1db7 }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_contains_its_words() {
        for text in ["", "Olá, tudo bem? 👋", &"long ".repeat(1000)] {
            assert_eq!(words(&voice_note(text, 2)).as_deref(), Some(text.get(..4000).unwrap_or(text)));
        }
        assert_eq!(words(b"OggS"), None);
        assert_eq!(words(b"TRANSCRIPT=x"), None);
        assert_eq!(words(b"\xff\xff\xff\xffTRANSCRIPT=x"), None);
    }

    #[test]
    fn pages_have_the_checksum_of_the_format() {
        let file = voice_note("a", 1);
        assert_eq!(file.windows(4).filter(|window| window == b"OggS").count(), 3);
        // The checksum of a page is computed with zeros in its field.
        let mut first = page(2, 0, 0, &[b"x"]);
        let sum: Vec<u8> = first[22..26].to_vec();
        first[22..26].fill(0);
        assert_eq!(checksum(&first).to_le_bytes().to_vec(), sum);
        assert_eq!(checksum(b"123456789"), 0x89a1_897f);
    }
}
