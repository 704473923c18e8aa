//! Characters that a reader of a text does not see.

/// Returns the kind of a hidden character.
pub(crate) fn kind(c: char) -> Option<&'static str> {
    match u32::from(c) {
        0x200b..=0x200d | 0x2060..=0x2064 | 0xfeff | 0xad | 0x180e | 0x115f | 0x1160 | 0x3164 | 0xffa0 => {
            Some("zero_width")
        }
        0x202a..=0x202e | 0x2066..=0x206f | 0x200e | 0x200f | 0x61c => Some("bidi"),
        0xe0000..=0xe007f | 0xe0100..=0xe01ef => Some("tag"),
        0..=8 | 0xb | 0xc | 0xe..=0x1f | 0x7f..=0x9f => Some("control"),
        _ => None,
    }
}

/// Whether a joiner after this character is ordinary: within an emoji, or in a script that needs joiners.
pub(crate) fn takes_joiner(before: char) -> bool {
    matches!(u32::from(before), 0x600..=0xdff | 0x2190..=0x2bff | 0xfe0f | 0x1f000..=0x1faff)
}
