//! Reads a long document piece by piece, its long lists a buffer at a time.
//!
//! serde_json reads a stream byte by byte, at nearly twice the instructions that a slice takes. So the stream passes
//! through a [`Window`]: the reader of a list looks there for elements that lie in the buffer as a whole, reads those as
//! slices, and moves the window on; whatever else there is (the fields around the lists, an element across the end of
//! the buffer, whatever is wrong) goes to serde_json as before. It sees a shorter document that is right or wrong for the
//! same reasons, and the window knows by how much its positions are off.

use std::cell::{Cell, RefCell};
use std::io::{self, Read};
use std::ops::Range;
use std::rc::Rc;

/// Line, from 1, and column: the bytes of the line so far.
pub(super) type Position = (u64, u64);

/// What is buffered of a document.
#[derive(Debug)]
pub(super) struct Window {
    bytes: RefCell<Vec<u8>>,
    /// How many of them have been read.
    at: Cell<usize>,
    /// The position in the document after those.
    position: Cell<Position>,
    /// The position in what the stream's reader saw, after the same byte.
    seen: Cell<Position>,
    /// Both, where the window was last moved on.
    moved: Cell<(Position, Position)>,
    /// Where an element was at fault that did not come through the stream.
    fault: Cell<Option<Position>>,
}

impl Window {
    fn new(bytes: Vec<u8>) -> Self {
        let start = (1, 0);
        Self {
            bytes: RefCell::new(bytes),
            at: Cell::new(0),
            position: Cell::new(start),
            seen: Cell::new(start),
            moved: Cell::new((start, start)),
            fault: Cell::new(None),
        }
    }

    /// Calls `read` with one element after another of the list that is being read, from the second on, as long as they
    /// are objects that lie in the buffer together with the comma before them and what follows them.
    ///
    /// # Errors
    /// What `read` returns; the text alone, as the position is known here.
    pub(super) fn each_element(
        &self,
        mut read: impl FnMut(&[u8]) -> Result<(), serde_json::Error>,
    ) -> Result<(), String> {
        let bytes = self.bytes.borrow();
        while let Some(element) = next_element(&bytes, self.at.get()) {
            let start = after(self.position.get(), &bytes[self.at.get()..element.start]);
            read(&bytes[element.clone()]).map_err(|error| {
                let (line, column) = (error.line() as u64, error.column() as u64);
                self.fault.set(Some(match line {
                    // 0: the element as a whole is at fault.
                    0 | 1 => (start.0, start.1 + column),
                    _ => (start.0 + line - 1, column),
                }));
                super::error::json_text(&error)
            })?;
            self.position.set(after(start, &bytes[element.clone()]));
            self.at.set(element.end);
            self.moved.set((self.seen.get(), self.position.get()));
        }
        Ok(())
    }

    /// The position in the document of an error that the stream's reader puts at this position.
    pub(super) fn position_of(&self, line: u64, column: u64) -> Position {
        let (seen, position) = self.moved.get();
        match self.fault.get() {
            Some(fault) => fault,
            // The reader may stand a byte before the place from which the window was moved on.
            None if line == seen.0 => (position.0, (position.1 + column).saturating_sub(seen.1)),
            None => ((position.0 + line).saturating_sub(seen.0), column),
        }
    }
}

/// The bytes of a document that did not go through the window's lists.
#[derive(Debug)]
pub(super) struct Stream<R> {
    window: Rc<Window>,
    rest: R,
    /// Bytes buffered at a time.
    size: usize,
}

impl<R: Read> Stream<R> {
    /// A document that starts with `head`; its rest is buffered in pieces of `size`.
    pub(super) fn new(head: Vec<u8>, rest: R, size: usize) -> Self {
        Self { window: Rc::new(Window::new(head)), rest, size }
    }

    pub(super) fn window(&self) -> Rc<Window> {
        Rc::clone(&self.window)
    }

    /// Buffers the next bytes in place of the ones that have been read.
    fn fill(&mut self) -> io::Result<()> {
        let mut bytes = self.window.bytes.borrow_mut();
        if bytes.capacity() != self.size {
            // The head is let go, while what was read from it is still small.
            *bytes = Vec::new();
            bytes.reserve_exact(self.size);
        }
        bytes.clear();
        self.window.at.set(0);
        self.rest.by_ref().take(self.size as u64).read_to_end(&mut bytes).map(drop)
    }
}

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.window.at.get() == self.window.bytes.borrow().len() {
            self.fill()?;
        }
        let bytes = self.window.bytes.borrow();
        let at = self.window.at.get();
        // The reader takes one byte at a time; were it to take more, the window could not be moved on behind its back.
        let (Some(&byte), Some(first)) = (bytes.get(at), buffer.first_mut()) else { return Ok(0) };
        *first = byte;
        self.window.at.set(at + 1);
        self.window.position.set(after(self.window.position.get(), &[byte]));
        self.window.seen.set(after(self.window.seen.get(), &[byte]));
        Ok(1)
    }
}

/// The position after some more bytes.
fn after((line, column): Position, bytes: &[u8]) -> Position {
    match bytes.iter().rposition(|&byte| byte == b'\n') {
        None => (line, column + bytes.len() as u64),
        Some(last) => {
            let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
            (line + lines as u64, (bytes.len() - 1 - last) as u64)
        }
    }
}

/// A comma, an object, and then another comma or the end of the list, from `at` on: where the object is. Whether its
/// inside is sound is for its reader to say.
fn next_element(bytes: &[u8], at: usize) -> Option<Range<usize>> {
    let blank = |at: usize| Some(at + bytes.get(at..)?.iter().position(|byte| !b" \t\r\n".contains(byte))?);
    let comma = blank(at)?;
    let start = if bytes[comma] == b',' { blank(comma + 1)? } else { return None };
    if bytes[start] != b'{' {
        return None;
    }
    let end = end_of_object(bytes, start)?;
    matches!(bytes[blank(end)?], b',' | b']').then_some(start..end)
}

/// Where the brackets of the object at `start` are closed again.
fn end_of_object(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = start;
    loop {
        let &byte = bytes.get(at)?;
        at += 1;
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            b'"' => loop {
                let &byte = bytes.get(at)?;
                at += 1;
                match byte {
                    b'"' => break,
                    // What it escapes is skipped, be it a quote or not.
                    b'\\' => at += 1,
                    _ => {}
                }
            },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_only_as_a_whole() {
        let text = br#" , {"a": "}\"{", "b": [{}]} , 1"#;
        assert_eq!(next_element(text, 0).map(|range| &text[range]), Some(&br#"{"a": "}\"{", "b": [{}]}"#[..]));
        for end in 0..text.len() - 2 {
            assert_eq!(next_element(&text[..end], 0), None, "{end}");
        }
        for text in ["{}, {}", ", [],", ", {} {}", ", {}: 1", ",", ", {\"\\", ", {}"] {
            assert_eq!(next_element(text.as_bytes(), 0), None, "{text}");
        }
    }

    #[test]
    fn positions_count_lines_and_bytes() {
        assert_eq!(after((3, 4), b"ab"), (3, 6));
        assert_eq!(after((3, 4), b"a\nb\ncde"), (5, 3));
        assert_eq!(after((3, 4), b"\n"), (4, 0));
    }
}
