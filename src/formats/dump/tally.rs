//! What a reader met many times: told once, with how often and the first few names.

use std::borrow::Cow;

use super::super::error::Note;

/// Names that are told; the others are counted.
const MOST_NAMES: usize = 3;

/// Counts by what was met, in the order in which each was met first.
#[derive(Debug)]
pub(in crate::formats) struct Tally {
    input: String,
    met: Vec<Met>,
}

#[derive(Debug)]
struct Met {
    what: Cow<'static, str>,
    times: u64,
    names: Vec<String>,
}

impl Tally {
    /// Nothing met yet; `input` stands in the notes.
    pub(in crate::formats) fn new(input: &str) -> Self {
        Self { input: input.to_owned(), met: Vec::new() }
    }

    /// Met once more: `what` is a plural and what became of them, such as "nodes without GPUs, left out".
    pub(in crate::formats) fn met(&mut self, what: impl Into<Cow<'static, str>>, name: &str) {
        let what = what.into();
        let at = self.met.iter().position(|met| met.what == what);
        let at = at.unwrap_or_else(|| {
            self.met.push(Met { what, times: 0, names: Vec::new() });
            self.met.len() - 1
        });
        let met = &mut self.met[at];
        met.times += 1;
        if met.names.len() < MOST_NAMES && !met.names.iter().any(|known| known == name) {
            met.names.push(name.to_owned());
        }
    }

    /// A note for each.
    pub(in crate::formats) fn notes(self) -> Vec<Note> {
        let Self { input, met } = self;
        let note = |Met { what, times, names }: Met| {
            let more = if times > names.len() as u64 { ", …" } else { "" };
            Note { place: input.clone(), text: format!("{what}: {times} ({}{more})", names.join(", ")) }
        };
        met.into_iter().map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_met_often_is_told_once() {
        let mut tally = Tally::new("f");
        for name in ["a", "b", "b", "c", "d"] {
            tally.met("nodes without GPUs, left out", name);
        }
        tally.met("others", "x");
        let notes: Vec<String> = tally.notes().iter().map(ToString::to_string).collect();
        assert_eq!(notes, ["f: nodes without GPUs, left out: 5 (a, b, c, …)", "f: others: 1 (x)"]);
    }
}
