//! A disk without room.

use crate::transactions::in_one_group;
use crate::{mark, marks};
use diesel::connection::SimpleConnection;
use model::Code;
use store::Tx;
use testkit::{Kind, TestDb};

/// The group of a transaction that finds the disk full is not committed, and each hears why.
#[tokio::test]
async fn a_full_disk_is_told_from_other_failures() {
    let test = TestDb::new(Kind::Sqlite);
    let work = |bytes: i64| {
        move |tx: &mut Tx| {
            mark(tx, "mark")?;
            // Not below the pages that there are. It lasts as long as the writer's connection.
            tx.connection().batch_execute("PRAGMA max_page_count = 1")?;
            if bytes > 0 {
                let filler = format!("INSERT INTO room_trials (id, filler) VALUES ('x', zeroblob({bytes}))");
                tx.connection().batch_execute(&filler)?;
            }
            Ok(())
        }
    };
    let results = in_one_group(&test.db, vec![work(0), work(1 << 22), work(0)]).await;
    let mut codes = results.iter().filter_map(|result| Some(result.as_ref().err()?.code()));
    assert!(codes.all(|code| code == Code::StorageFull), "{results:?}");
    assert!(results[1].is_err());
    let answered = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(marks(&test.db).await.len(), answered, "only what was answered is there, and all of it");
    let more = |tx: &mut Tx| Ok(tx.connection().batch_execute("PRAGMA max_page_count = 1000000")?);
    test.db.write(more).await.unwrap();
    assert!(test.db.has_room().await.unwrap(), "the trial finds room");
    test.db.write(|tx| mark(tx, "after")).await.unwrap();
}
