// Texts of what is done in Collections with many records and views: undo, bulk changes, boards and calendars.

export const collectionLooks = {
  undo: {
    verb: "Undo",
    next: "Undo one more",
    nextOrAgain: "Undo",
    close: "Close the notice",
    shortcut: "Undo the last change of records",
    changed: (field: string, record: string) => `${field} of ${record} changed`,
    cleared: (field: string, record: string) => `${field} of ${record} cleared`,
    changedMany: (field: string, records: string) => `${field} changed in ${records} records`,
    trashed: (record: string) => `${record} moved to the trash`,
    trashedMany: (records: string) => `${records} records moved to the trash`,
    done: (change: string) => `Undone: ${change}`,
    refused: (field: string, record: string, reason: string) => `Not undone: ${field} of ${record}. ${reason}`,
    someRefused: (records: string, reasons: string) => `Not undone in ${records} ${records === "1" ? "record" : "records"}. ${reasons}`,
    failed: (reason: string) => `Not undone. ${reason}`,
    byOther: "Somebody else has changed it meanwhile.",
    conflict: "Your change is not undone, because this value is newer.",
    yours: "Your change",
    wouldSet: "Before your change",
  },
};
