//! Audiences from a CSV file. Its header tells by which columns contacts are identified.
//!
//! A file is read in chunks. Each begins where the last one ended.

use fields::usual_names;
use files::{FileRow, Files};
use futures::TryStreamExt;
use model::{Error, FileId, Result, WorkspaceId};
use ports::ContactRef;
use std::ops::Range;
use store::Read;
use transfer::tables::{self, Dialect, Encoding, Fault, Lines, Row, Rows, is_short_of_a_quote};

/// The parameter in errors.
const PARAM: &str = "audience.file_id";
/// The largest file, in bytes.
const MAX_BYTES: i64 = 100 << 20;
/// The number of bytes at the start that determine encoding and delimiter.
const HEAD_BYTES: u64 = 64 << 10;
/// The number of bytes per chunk. No line may be longer.
const CHUNK_BYTES: u64 = 256 << 10;
/// The most lines per chunk.
const MAX_LINES: usize = 1_000;

/// The columns that identify a contact, each with the prefix for [`ContactRef`].
const COLUMNS: [(&str, &str); 5] =
    [("id", ""), ("contactid", ""), ("phone", "phone:"), ("email", "email:"), ("externalid", "external:")];

/// The values of a line that identify a contact. They must agree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListedContact {
    /// The values other than the id.
    pub(crate) identities: Vec<ContactRef>,
    /// The id. It may be an id of another system.
    pub(crate) id: Option<ContactRef>,
}

/// The contacts of a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) contacts: Vec<ListedContact>,
    /// The offset of the next line, in bytes.
    pub(crate) end: i64,
    pub(crate) is_end: bool,
}

/// Finds the file of a list.
///
/// # Errors
/// `validation_error` if the file does not exist, is too large or is not text.
pub(crate) fn file(read: &mut Read, workspace: WorkspaceId, id: FileId) -> Result<FileRow> {
    let file = files::live(read, workspace, id);
    let file = file.map_err(|_| Error::invalid(PARAM, "must be the id of a file"))?;
    let rule = "must be the id of a CSV file of at most 100 MiB";
    if let Some(reason) = tables::refusal(&file.mime_type) {
        return Err(Error::invalid(PARAM, format_args!("{rule}; the file {reason}")));
    }
    if file.size > MAX_BYTES { Err(Error::invalid(PARAM, rule)) } else { Ok(file) }
}

/// Reads the next lines after an offset.
///
/// # Errors
/// `validation_error` if it is not a list of contacts, or `internal_error`.
pub(crate) async fn read(files: &Files, file: &FileRow, from: i64) -> Result<Listed> {
    let size = u64::try_from(file.size).unwrap_or_default();
    let from = u64::try_from(from).unwrap_or_default();
    let start = bytes(files, file, 0..size.min(HEAD_BYTES)).await?;
    let header = Header::of(&start, size <= HEAD_BYTES)?;
    let from = from.max(header.end).min(size);
    let end = size.min(from + CHUNK_BYTES);
    let chunk = bytes(files, file, from..end).await?;
    let (contacts, read) = header.lines(&chunk, end == size)?;
    let end = from + read;
    Ok(Listed { contacts, end: i64::try_from(end).unwrap_or(file.size), is_end: end >= size })
}

async fn bytes(files: &Files, file: &FileRow, range: Range<u64>) -> Result<Vec<u8>> {
    if range.is_empty() {
        return Ok(Vec::new());
    }
    let chunks = files.read(file, Some(range)).await?;
    let all = chunks.try_fold(Vec::new(), |mut all, chunk| async move {
        all.extend_from_slice(&chunk);
        Ok(all)
    });
    all.await.map_err(Error::internal)
}

/// The format of a file, from its header.
struct Header {
    encoding: &'static Encoding,
    delimiter: u8,
    /// The indexes of the columns that identify a contact, each with the prefix for [`ContactRef`].
    columns: Vec<(usize, &'static str)>,
    /// The offset of the second line, in bytes.
    end: u64,
}

impl Header {
    fn of(start: &[u8], is_whole: bool) -> Result<Self> {
        let encoding = tables::encoding(start).map_err(Error::internal)?;
        let lines = Lines::of(start, encoding, is_whole);
        let dialect = Dialect::of(&lines.text, None);
        let rest = lines.text.get(dialect.start..).unwrap_or_default();
        let mut rows = Rows::new(rest.as_bytes(), dialect.delimiter);
        let names: Vec<String> = match rows.next_row().map_err(Error::internal)? {
            Some(Row::Cells(cells)) => cells.iter().map(name).collect(),
            Some(Row::Fault(fault)) => return Err(unclosed(&fault)),
            Some(Row::TooLong) | None => Vec::new(),
        };
        let column = |(name, prefix): (&str, &'static str)| {
            names.iter().position(|other| other == name).map(|place| (place, prefix))
        };
        let mut columns: Vec<_> = COLUMNS.into_iter().filter_map(column).collect();
        // Headers such as `Móvil` and `Correo` also mean the telephone number and the e-mail address, unless a column
        // has the exact name.
        for (key, prefix) in [("$phone", "phone:"), ("$email", "email:")] {
            if !columns.iter().any(|(_, other)| *other == prefix) {
                let usual = usual_names::best_column(names.iter().map(String::as_str), key);
                columns.extend(usual.map(|place| (place, prefix)));
            }
        }
        if columns.is_empty() {
            let rule = "must be a CSV file with one of the columns `id`, `phone`, `email` and `external_id`";
            return Err(Error::invalid(PARAM, rule));
        }
        let end = lines.place(dialect.start + usize::try_from(rows.place()).unwrap_or_default());
        Ok(Self { encoding, delimiter: dialect.delimiter, columns, end })
    }

    /// Returns the contacts of the complete lines of a chunk, and the number of bytes of those lines.
    fn lines(&self, chunk: &[u8], is_last: bool) -> Result<(Vec<ListedContact>, u64)> {
        let lines = Lines::of(chunk, self.encoding, is_last);
        let whole = lines.text.len() as u64;
        let mut rows = Rows::new(lines.text.as_bytes(), self.delimiter);
        let (mut contacts, mut end) = (Vec::new(), 0);
        while contacts.len() < MAX_LINES {
            let row = rows.next_row().map_err(Error::internal)?;
            // The last line may continue after the chunk.
            if row.is_some() && rows.place() >= whole && !is_last {
                break;
            }
            match row {
                Some(Row::Cells(cells)) if is_short_of_a_quote(&cells, self.delimiter) => {
                    let value = cells.iter().find(|cell| cell.contains(['\n', '\r'])).unwrap_or_default();
                    return Err(unclosed(&Fault { value: value.chars().take(40).collect() }));
                }
                Some(Row::Cells(cells)) => contacts.push(self.contact(&cells)),
                Some(Row::TooLong) => contacts.push(ListedContact::default()),
                Some(Row::Fault(fault)) => return Err(unclosed(&fault)),
                None => {
                    end = whole;
                    break;
                }
            }
            end = rows.place();
        }
        if end == 0 && !chunk.is_empty() {
            return Err(Error::invalid(PARAM, "must have lines of at most 256 KiB"));
        }
        let end = lines.place(usize::try_from(end).unwrap_or_default());
        Ok((contacts, end))
    }

    /// Parses the contact of a line.
    fn contact(&self, line: &csv::StringRecord) -> ListedContact {
        let mut listed = ListedContact::default();
        for (place, prefix) in &self.columns {
            let value = line.get(*place).unwrap_or_default().trim();
            if value.is_empty() {
                continue;
            }
            let Ok(contact) = format!("{prefix}{value}").parse();
            if prefix.is_empty() {
                listed.id = listed.id.or(Some(contact));
            } else {
                listed.identities.push(contact);
            }
        }
        listed
    }
}

/// Normalizes the name of a column, so that `External ID` and `$external_id` are equal.
fn name(cell: &str) -> String {
    cell.chars().filter(|letter| letter.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn unclosed(fault: &Fault) -> Error {
    let value = &fault.value;
    Error::invalid(PARAM, format_args!("has a quoted value that is never closed: `\"{value}`"))
}

#[cfg(test)]
mod tests {
    use super::{Header, ListedContact, MAX_LINES};

    /// Returns the contacts in these bytes, read in chunks of this size.
    fn listed(bytes: &[u8], chunk: usize) -> Vec<String> {
        let header = Header::of(bytes, true).unwrap();
        let (mut from, mut all) = (usize::try_from(header.end).unwrap(), Vec::new());
        while from < bytes.len() {
            let end = bytes.len().min(from + chunk);
            let some = &bytes[from..end];
            let lines = header.lines(some, end == bytes.len());
            let (contacts, read) = lines.unwrap_or_else(|error| panic!("{error}: {from} {chunk} {some:?}"));
            assert!(read > 0 && contacts.len() <= MAX_LINES);
            from += usize::try_from(read).unwrap();
            all.extend(contacts.iter().map(spelled));
        }
        all
    }

    fn spelled(listed: &ListedContact) -> String {
        let all: Vec<String> = listed.id.iter().chain(&listed.identities).map(ToString::to_string).collect();
        all.join(" ")
    }

    #[test]
    fn lists_are_read_in_chunks() {
        let texts = [
            "Name,Phone,Email\nAna,+5511987654321,ana@example.com\n\"Be,\nn\",,ben@example.com\n\nCem,,\nDan,+5511912345678,\n",
            "\u{feff}Name;$Phone;E-Mail\r\nAna;+5511987654321;ana@example.com\r\n\"Be,\r\nn\";;ben@example.com\r\n;;\r\nCem\r\nDan;+5511912345678",
            "sep=;\r\n\"Name, full\";Phone;email\r\nAna;+5511987654321;ana@example.com\r\nBe;;ben@example.com\rC;;\rDan;+5511912345678",
        ];
        let expected = [
            "phone:+5511987654321 email:ana@example.com",
            "email:ben@example.com",
            "",
            "phone:+5511912345678",
        ];
        for text in texts {
            let marked = format!("\u{feff}{}", text.trim_start_matches('\u{feff}'));
            let little: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
            let big: Vec<u8> = marked.encode_utf16().flat_map(u16::to_be_bytes).collect();
            for chunk in [80, 81, 82, 83, 100, 1_000] {
                assert_eq!(listed(text.as_bytes(), chunk), expected, "{chunk}: {text}");
                assert_eq!(listed(&little, chunk * 2), expected, "{chunk}: {text}");
                assert_eq!(listed(&big, chunk * 2 + 1), expected, "{chunk}: {text}");
            }
        }
        let windows = b"nombre;external_id;phone\nMu\xf1oz;a\xf1o;\nN\xfa\xf1ez;;34600111222\n";
        assert_eq!(listed(windows, 30), ["external:año", "phone:34600111222"]);
        let many: String = (0..2_500).map(|number| format!("{number}\n")).collect();
        assert_eq!(listed(format!("contact_id\n{many}").as_bytes(), 1 << 20).len(), 2_500);
        assert_eq!(listed(b"External ID\tid\nx\t\ny\t7\n", 100), ["external:x", "7 external:y"]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "\n", "name,age\nAna,7\n", "\u{0}\u{1}\u{2}", "id,\"name\n1,x\n"] {
            assert!(Header::of(text.as_bytes(), true).is_err(), "{text:?}");
        }
        let header = Header::of(b"id,name,city\n", true).unwrap();
        assert!(header.lines(&[b'7'; 300], false).is_err());
        assert_eq!(header.lines(b"", true).unwrap().0, []);
        for text in ["1,\"x\n2,y,z\n", "1,\"x\n2,\"y\",z\n", "1,a,\"6 in\n2,b,8\"\n3,c,d\n"] {
            let error = header.lines(text.as_bytes(), true).unwrap_err();
            assert!(error.message().contains("never closed"), "{text:?}");
        }
    }
}
