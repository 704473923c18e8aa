//! The declaration of invocations as a log.

use super::rows::InvocationRow;
use model::{JsonText, WorkspaceId};
use store::Tx;
use store::logs::{self, Key, LogKind, PerRow, Size};

/// Calls of functions.
pub const INVOCATION_LOG: LogKind = LogKind {
    days: 14,
    key: Key::Id("id"),
    texts: &["input", "output", "error", "logs", "fetches", "warnings", "caller", "chain"],
    row_bytes: ROW_BYTES,
    piece: 100,
    ..LogKind::of("function_invocations")
};

/// What a row takes besides its texts.
const ROW_BYTES: PerRow = PerRow { sqlite: 460, postgres: 620 };

impl InvocationRow {
    /// The bytes of the texts.
    fn text_bytes(&self) -> i64 {
        let optional = [&self.output, &self.error, &self.logs, &self.fetches, &self.warnings, &self.chain];
        let texts = optional.into_iter().flatten().chain([&self.input, &self.caller]);
        texts.map(|text: &JsonText| i64::try_from(text.as_str().len()).unwrap_or(0)).sum()
    }
}

/// Counts rows that this transaction adds.
pub(super) fn count<'a>(tx: &mut Tx, rows: impl Iterator<Item = &'a InvocationRow>) {
    let fixed = ROW_BYTES.on(tx);
    let sizes = rows.map(|row| (row.workspace_id, Size::row(fixed + row.text_bytes())));
    logs::add(tx, INVOCATION_LOG.name, &logs::sum(sizes));
}

/// Counts the growth of a row whose call ended.
pub(super) fn count_growth(tx: &mut Tx, before: &InvocationRow, after: &InvocationRow) {
    let growth = Size::part(after.text_bytes() - before.text_bytes());
    logs::add(tx, INVOCATION_LOG.name, &logs::sum([(after.workspace_id, growth)]));
}

/// Counts a row that this transaction deletes.
pub(super) fn count_out(tx: &mut Tx, row: &InvocationRow) {
    let bytes = ROW_BYTES.on(tx) + row.text_bytes();
    let sizes: [(WorkspaceId, Size); 1] = [(row.workspace_id, Size { rows: -1, bytes: -bytes })];
    logs::add(tx, INVOCATION_LOG.name, &logs::sum(sizes));
}
