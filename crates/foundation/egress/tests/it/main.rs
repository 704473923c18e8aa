//! Tests of the connector with servers on loopback and a scripted resolver. No test contacts another machine.

#[cfg(test)]
mod coding;
mod exchange;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod redirects;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tls;
