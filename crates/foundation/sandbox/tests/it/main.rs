//! The sandbox, with real processes.

#[cfg(test)]
mod escapes;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod hosts;
#[cfg(test)]
mod lives;
#[cfg(test)]
mod messages;
#[cfg(test)]
mod programs;
#[cfg(test)]
mod support;
