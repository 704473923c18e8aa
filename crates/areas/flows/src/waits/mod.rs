//! Who wakes runs: replies of contacts, events, and decisions of people.
