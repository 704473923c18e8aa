//! Workers that wait for their next call.

use super::worker::Worker;
use crate::call::{Key, Program};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Idle workers by whose program they run.
#[derive(Debug, Default)]
pub struct Pool(Mutex<HashMap<Key, Vec<Worker>>>);

impl Pool {
    fn workers(&self) -> MutexGuard<'_, HashMap<Key, Vec<Worker>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a worker that can serve a call of `program` with this memory, the one that was used last.
    pub fn take(&self, key: &Key, program: &Program, memory: usize) -> Option<Worker> {
        let mut unfit = Vec::new();
        let mut workers = self.workers();
        let mine = workers.get_mut(key)?;
        let mut found = None;
        while let Some(worker) = mine.pop() {
            if worker.program.0 == program.0
                && worker.memory == memory
                && !worker.zygote.is_dead()
                && worker.is_quiet()
            {
                found = Some(worker);
                break;
            }
            unfit.push(worker);
        }
        if mine.is_empty() {
            workers.remove(key);
        }
        drop(workers);
        found
    }

    /// Keeps a worker for the next call. Of more than `most`, the one that waits longest is ended.
    pub fn put(&self, key: &Key, mut worker: Worker, most: usize) {
        worker.idle_since = Instant::now();
        let mut workers = self.workers();
        workers.entry(key.clone()).or_default().push(worker);
        let count: usize = workers.values().map(Vec::len).sum();
        let oldest = if count > most { remove_oldest(&mut workers) } else { None };
        drop(workers);
        drop(oldest);
    }

    /// Ends workers that wait longer than `idle`. Returns how many are left.
    pub fn sweep(&self, idle: Duration) -> usize {
        let mut ended = Vec::new();
        let mut workers = self.workers();
        for mine in workers.values_mut() {
            ended.extend(
                mine.extract_if(.., |worker| worker.idle_since.elapsed() >= idle || worker.zygote.is_dead()),
            );
        }
        workers.retain(|_, mine| !mine.is_empty());
        workers.values().map(Vec::len).sum()
    }

    /// How many wait.
    pub fn count(&self) -> usize {
        self.workers().values().map(Vec::len).sum()
    }
}

fn remove_oldest(workers: &mut HashMap<Key, Vec<Worker>>) -> Option<Worker> {
    // In each list the first waits longest.
    let (key, _) = workers
        .iter()
        .filter_map(|(key, mine)| Some((key, mine.first()?.idle_since)))
        .min_by_key(|one| one.1)?;
    let key = key.clone();
    let mine = workers.get_mut(&key)?;
    let oldest = mine.remove(0);
    if mine.is_empty() {
        workers.remove(&key);
    }
    Some(oldest)
}
