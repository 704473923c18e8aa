//! Places for calls: few for each workspace, and a queue that gives each workspace its turn.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// The places of a sandbox.
#[derive(Debug)]
pub struct Shares {
    /// Calls at a time.
    all: usize,
    /// Calls of one workspace at a time.
    each: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    workspaces: HashMap<String, Workspace>,
    /// Workspaces that have calls waiting, in the order of their turns.
    turns: VecDeque<String>,
}

#[derive(Debug, Default)]
struct Workspace {
    taken: usize,
    waiting: VecDeque<oneshot::Sender<Place>>,
}

/// A place that a call takes. It is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    shares: Arc<Shares>,
    workspace: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shares.free(&self.workspace);
    }
}

impl Shares {
    /// `all` places, of which a workspace takes at most `each`.
    pub fn new(all: usize, each: usize) -> Arc<Self> {
        Arc::new(Self { all: all.max(1), each: each.max(1), state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls that run, and calls that wait.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.state();
        (state.taken, state.workspaces.values().map(|workspace| workspace.waiting.len()).sum())
    }

    /// Takes a place; `None` if none becomes free within `patience`, or if too many wait already.
    pub async fn take(self: &Arc<Self>, workspace: &str, patience: Duration) -> Option<Place> {
        /// Calls that wait, for each that may run.
        const QUEUE: usize = 50;
        let turn = {
            let mut state = self.state();
            let State { taken, workspaces, turns } = &mut *state;
            let mine = workspaces.entry(workspace.to_owned()).or_default();
            if mine.waiting.is_empty() && mine.taken < self.each && *taken < self.all {
                mine.taken += 1;
                *taken += 1;
                return Some(Place { shares: Arc::clone(self), workspace: workspace.to_owned() });
            }
            mine.waiting.retain(|waiting| !waiting.is_closed());
            if mine.waiting.len() >= self.each.saturating_mul(QUEUE) {
                return None;
            }
            if !turns.iter().any(|turn| turn == workspace) {
                turns.push_back(workspace.to_owned());
            }
            let (give, turn) = oneshot::channel();
            mine.waiting.push_back(give);
            turn
        };
        tokio::time::timeout(patience, turn).await.ok()?.ok()
    }

    fn free(self: &Arc<Self>, workspace: &str) {
        let mut state = self.state();
        state.taken = state.taken.saturating_sub(1);
        if let Some(mine) = state.workspaces.get_mut(workspace) {
            mine.taken = mine.taken.saturating_sub(1);
            if mine.taken == 0 && mine.waiting.is_empty() {
                state.workspaces.remove(workspace);
            }
        }
        let given = self.next(&mut state);
        drop(state);
        if let Some((give, workspace)) = given {
            // If the call went away meanwhile, the place comes back, and the next gets it.
            let _ = give.send(Place { shares: Arc::clone(self), workspace });
        }
    }

    /// Takes a place for the call whose turn it is.
    fn next(&self, state: &mut State) -> Option<(oneshot::Sender<Place>, String)> {
        if state.taken >= self.all {
            return None;
        }
        for _ in 0..state.turns.len() {
            let workspace = state.turns.pop_front()?;
            let Some(mine) = state.workspaces.get_mut(&workspace) else { continue };
            mine.waiting.retain(|waiting| !waiting.is_closed());
            if mine.waiting.is_empty() {
                if mine.taken == 0 {
                    state.workspaces.remove(&workspace);
                }
                continue;
            }
            if mine.taken >= self.each {
                state.turns.push_back(workspace);
                continue;
            }
            let give = mine.waiting.pop_front()?;
            mine.taken += 1;
            state.taken += 1;
            if !mine.waiting.is_empty() {
                state.turns.push_back(workspace.clone());
            }
            return Some((give, workspace));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_workspace_takes_its_share_and_no_more() {
        let shares = Shares::new(3, 2);
        let first = shares.take("a", LONG).await;
        let second = shares.take("a", LONG).await;
        assert!(first.is_some() && second.is_some());
        assert!(shares.take("a", Duration::ZERO).await.is_none());
        let other = shares.take("b", LONG).await;
        assert!(other.is_some());
        assert!(shares.take("c", Duration::ZERO).await.is_none());
        drop(first);
        assert!(shares.take("c", LONG).await.is_some());
        drop((second, other));
        assert_eq!(shares.counts(), (0, 0));
        assert!(shares.state().workspaces.is_empty());
    }

    #[tokio::test]
    async fn workspaces_take_turns() {
        let shares = Shares::new(1, 1);
        let running = shares.take("a", LONG).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for workspace in ["a", "a", "a", "b"] {
            let (shares, order) = (Arc::clone(&shares), Arc::clone(&order));
            waiting.push(tokio::spawn(async move {
                let place = shares.take(workspace, LONG).await.unwrap();
                order.lock().unwrap().push(workspace);
                drop(place);
            }));
            tokio::task::yield_now().await;
        }
        assert_eq!(shares.counts(), (1, 4));
        drop(running);
        for one in waiting {
            one.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["a", "b", "a", "a"]);
        assert_eq!(shares.counts(), (0, 0));
    }

    #[tokio::test]
    async fn a_call_that_went_away_holds_no_place() {
        let shares = Shares::new(1, 1);
        let running = shares.take("a", LONG).await;
        assert!(shares.take("a", Duration::ZERO).await.is_none());
        assert!(shares.take("b", Duration::ZERO).await.is_none());
        drop(running);
        assert_eq!(shares.counts(), (0, 0));
        assert!(shares.take("c", LONG).await.is_some());
    }
}
