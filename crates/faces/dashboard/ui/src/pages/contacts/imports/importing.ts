// Reading a file for an import, and the rows that an import has rejected.

/** The largest text of a request. */
export const LARGEST = 16 * 1024 * 1024;

/** Returns the text of a file, whose encoding is found as the service finds it: UTF-8, UTF-16 with its mark, else windows-1252. */
export function decode(bytes: Uint8Array, encoding = ""): string {
  if (encoding) return new TextDecoder(encoding).decode(bytes);
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

/** Returns the rows of a CSV file with commas, as the service writes it. */
export function parseCsv(text: string): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const letter = text[at];
    if (isQuoted) {
      if (letter !== '"') cell += letter;
      else if (text[at + 1] === '"') { cell += '"'; at += 1; }
      else isQuoted = false;
    } else if (letter === '"') isQuoted = true;
    else if (letter === ",") { row.push(cell); cell = ""; }
    else if (letter === "\n") { row.push(cell.replace(/\r$/, "")); rows.push(row); [row, cell] = [[], ""]; }
    else cell += letter;
  }
  if (cell !== "" || row.length) rows.push([...row, cell]);
  return rows;
}
