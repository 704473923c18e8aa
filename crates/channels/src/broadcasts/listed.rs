//! Audiences that are listed in a file: CSV whose header names what the contacts are known by.

use csv::{ByteRecord, ReaderBuilder};
use files::{FileRow, Files};
use futures::TryStreamExt;
use model::{Error, FileId, Result, WorkspaceId};
use operation::ports::ContactRef;
use std::ops::Range;
use store::Read;

/// What errors call the file.
const PARAM: &str = "audience.file_id";
/// The largest file, in bytes.
const MOST_BYTES: i64 = 100 << 20;
/// The longest header, in bytes.
const HEADER_BYTES: u64 = 64 << 10;
/// So many bytes are read at once; no line is longer.
const CHUNK_BYTES: u64 = 256 << 10;
/// So many lines are read at once.
const MOST_LINES: usize = 1_000;

/// A column that says who a contact is, and how a path names a contact by it.
const COLUMNS: [(&str, &str); 5] =
    [("id", ""), ("contact_id", ""), ("phone", "phone:"), ("email", "email:"), ("external_id", "external:")];

/// Some of those whom a file lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) contacts: Vec<ContactRef>,
    /// Where the next line begins, in bytes.
    pub(super) end: i64,
    pub(super) is_end: bool,
}

/// The file of a list.
///
/// # Errors
/// `validation_error` where the workspace has no such file, or it is too large or no text.
pub(super) fn file(read: &mut Read, workspace: WorkspaceId, id: FileId) -> Result<FileRow> {
    let file = files::live(read, workspace, id);
    let file = file.map_err(|_| Error::invalid(PARAM, "must be the id of a file"))?;
    if file.size > MOST_BYTES || !file.mime_type.starts_with("text/") {
        return Err(Error::invalid(PARAM, "must be the id of a CSV file of at most 100 MiB"));
    }
    Ok(file)
}

/// Reads the next lines of a list behind a place.
///
/// # Errors
/// `validation_error` where it is no list of contacts; the storage's.
pub(super) async fn read(files: &Files, file: &FileRow, from: i64) -> Result<Listed> {
    let size = u64::try_from(file.size).unwrap_or_default();
    let from = u64::try_from(from).unwrap_or_default();
    let start = bytes(files, file, 0..size.min(HEADER_BYTES)).await?;
    let header = Header::of(&start)?;
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

/// What the first line says.
struct Header {
    delimiter: u8,
    /// The columns that say who a contact is, the surest first, and how a path names a contact by each.
    columns: Vec<(usize, &'static str)>,
    /// Where the second line begins, in bytes.
    end: u64,
}

impl Header {
    fn of(start: &[u8]) -> Result<Self> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let mark = if start.starts_with(MARK) { MARK.len() } else { 0 };
        let text = start.get(mark..).unwrap_or_default();
        let line = text.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
        let count = |delimiter: u8| line.iter().filter(|byte| **byte == delimiter).count();
        let delimiter = [b',', b';', b'\t'].into_iter().rev().max_by_key(|delimiter| count(*delimiter));
        let delimiter = delimiter.unwrap_or(b',');
        let mut reader =
            ReaderBuilder::new().delimiter(delimiter).has_headers(false).flexible(true).from_reader(text);
        let mut names = ByteRecord::new();
        reader.read_byte_record(&mut names).map_err(unreadable)?;
        let name = |bytes: &[u8]| {
            let name = String::from_utf8_lossy(bytes).trim().to_lowercase();
            name.strip_prefix('$').unwrap_or(&name).to_owned()
        };
        let names: Vec<String> = names.iter().map(name).collect();
        let column = |(name, prefix): (&str, &'static str)| {
            names.iter().position(|other| other == name).map(|place| (place, prefix))
        };
        let columns: Vec<_> = COLUMNS.into_iter().filter_map(column).collect();
        if columns.is_empty() {
            let rule = "must be a CSV file with one of the columns `id`, `phone`, `email` and `external_id`";
            return Err(Error::invalid(PARAM, rule));
        }
        Ok(Self { delimiter, columns, end: reader.position().byte() + mark as u64 })
    }

    /// The contacts of the lines that a chunk of the file has whole, and how many bytes those lines have.
    fn lines(&self, chunk: &[u8], is_last: bool) -> Result<(Vec<ContactRef>, u64)> {
        let mut reader = ReaderBuilder::new()
            .delimiter(self.delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(chunk);
        let (mut contacts, mut end, mut line) = (Vec::new(), 0, ByteRecord::new());
        for _ in 0..MOST_LINES {
            if !reader.read_byte_record(&mut line).map_err(unreadable)? {
                return Ok((contacts, chunk.len() as u64));
            }
            let behind = reader.position().byte();
            // What ends with the chunk may go on behind it.
            if behind >= chunk.len() as u64 && !is_last {
                break;
            }
            contacts.extend(self.contact(&line));
            end = behind;
        }
        if end == 0 {
            return Err(Error::invalid(PARAM, "must have lines of at most 256 KiB"));
        }
        Ok((contacts, end))
    }

    /// The contact that a line names.
    fn contact(&self, line: &ByteRecord) -> Option<ContactRef> {
        let name = self.columns.iter().find_map(|(place, prefix)| {
            let value = str::from_utf8(line.get(*place)?).ok()?.trim();
            (!value.is_empty()).then(|| format!("{prefix}{value}"))
        });
        name?.parse().ok()
    }
}

fn unreadable(error: csv::Error) -> Error {
    Error::invalid(PARAM, "must be a CSV file").caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::{Header, MOST_LINES};

    /// What a text lists, read in chunks of so many bytes.
    fn listed(text: &str, chunk: usize) -> Vec<String> {
        let header = Header::of(text.as_bytes()).unwrap();
        let (mut from, mut all) = (usize::try_from(header.end).unwrap(), Vec::new());
        while from < text.len() {
            let end = text.len().min(from + chunk);
            let (contacts, read) = header.lines(&text.as_bytes()[from..end], end == text.len()).unwrap();
            assert!(read > 0 && contacts.len() <= MOST_LINES);
            from += usize::try_from(read).unwrap();
            all.extend(contacts.iter().map(ToString::to_string));
        }
        all
    }

    #[test]
    fn lists_are_read_in_chunks() {
        let texts = [
            "Name,Phone,Email\nAna,+5511987654321,ana@example.com\n\"Be,\nn\",,ben@example.com\n\nCem,,\nDan,+5511912345678,\n",
            "\u{feff}Name;$Phone;Email\r\nAna;+5511987654321;ana@example.com\r\n\"Be,\r\nn\";;ben@example.com\r\n;;\r\nDan;+5511912345678",
        ];
        for text in texts {
            for chunk in [48, 49, 50, 51, 64, 1_000] {
                let expected = ["phone:+5511987654321", "email:ben@example.com", "phone:+5511912345678"];
                assert_eq!(listed(text, chunk), expected, "{chunk}: {text}");
            }
        }
        let many: String = (0..2_500).map(|number| format!("{number}\n")).collect();
        assert_eq!(listed(&format!("contact_id\n{many}"), 1 << 20).len(), 2_500);
        assert_eq!(listed("external_id\tid\nx\t\ny\t7\n", 100), ["external:x", "7"]);
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for text in ["", "\n", "name,age\nAna,7\n", "\u{0}\u{1}\u{2}"] {
            assert!(Header::of(text.as_bytes()).is_err(), "{text:?}");
        }
        let header = Header::of(b"id\n").unwrap();
        assert!(header.lines(&[b'7'; 300], false).is_err());
        assert_eq!(header.lines(b"", true).unwrap().0, []);
    }
}
