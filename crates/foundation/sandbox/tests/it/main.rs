//! The sandbox, with real processes.

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod support;
