//! Seeds that read JSON element by element into reused buffers, and know at every moment where they are.
//!
//! The reading itself is serde_json's. What these add is the path for errors (kept as a stack, so that it costs nothing
//! until it is needed), the ranges of numbers, and the refusal of unknown and repeated fields, without a record in
//! memory for each element.

use std::fmt::{self, Write};
use std::marker::PhantomData;
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};

use super::window::Window;

/// One step down into a document.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    Key(&'static str),
    Index(usize),
}

/// Where the reader is in the document. A reader that fails leaves it as it is.
#[derive(Debug, Default)]
pub(super) struct Path {
    steps: Vec<Step>,
    /// What is buffered of the document, if it comes as a stream: the lists of its outermost object read from there.
    window: Option<Rc<Window>>,
}

impl Path {
    /// The start of a document that comes through this window.
    pub(super) fn through(window: Rc<Window>) -> Self {
        Self { steps: Vec::new(), window: Some(window) }
    }

    /// What is read from now on was taken out of the document before.
    pub(super) fn leave_window(&mut self) {
        self.window = None;
    }

    pub(super) fn key(&mut self, key: &'static str) {
        self.steps.push(Step::Key(key));
    }

    pub(super) fn index(&mut self, index: usize) {
        self.steps.push(Step::Index(index));
    }

    pub(super) fn up(&mut self) {
        self.steps.pop();
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, step) in self.steps.iter().enumerate() {
            match step {
                Step::Key(key) if i == 0 => f.write_str(key)?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// What reads an object of known fields.
pub(super) trait Object {
    /// For errors: "a node".
    const WHAT: &'static str;
    /// At most 32 names.
    const FIELDS: &'static [&'static str];

    /// Reads the value of field `FIELDS[field]`.
    fn field<'de, A: MapAccess<'de>>(&mut self, field: usize, map: &mut A, path: &mut Path) -> Result<(), A::Error>;

    /// Everything was read; bit i of `seen` tells whether field i was there.
    fn finish<E: Error>(&mut self, seen: u32, path: &mut Path) -> Result<(), E>;

    /// A field that is not known.
    fn unknown<E: Error>(name: &str) -> E {
        E::unknown_field(name, Self::FIELDS)
    }
}

/// An error unless all of these fields were there.
pub(super) fn require<T: Object, E: Error>(seen: u32, fields: &[usize]) -> Result<(), E> {
    match fields.iter().find(|&&field| seen >> field & 1 == 0) {
        Some(&field) => Err(E::missing_field(T::FIELDS[field])),
        None => Ok(()),
    }
}

/// Reads one object.
pub(super) struct ObjectSeed<'a, T>(pub(super) &'a mut T, pub(super) &'a mut Path);

impl<'de, T: Object> DeserializeSeed<'de> for ObjectSeed<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, T: Object> Visitor<'de> for ObjectSeed<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an object that is {}", T::WHAT)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self(object, path) = self;
        let mut seen = 0u32;
        let mut likely = 0;
        while let Some(field) = map.next_key_seed(KeySeed::<T>(likely, PhantomData))? {
            let name = T::FIELDS[field];
            if seen >> field & 1 == 1 {
                return Err(A::Error::duplicate_field(name));
            }
            seen |= 1 << field;
            likely = field + 1;
            path.key(name);
            object.field(field, &mut map, path)?;
            path.up();
        }
        object.finish(seen, path)
    }
}

/// Reads a field's name; the number is the field that comes next if the file keeps our order.
struct KeySeed<T>(usize, PhantomData<T>);

impl<'de, T: Object> DeserializeSeed<'de> for KeySeed<T> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<usize, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T: Object> Visitor<'_> for KeySeed<T> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<usize, E> {
        if T::FIELDS.get(self.0).is_some_and(|&likely| likely == name) {
            return Ok(self.0);
        }
        T::FIELDS.iter().position(|&field| field == name).ok_or_else(|| T::unknown(name))
    }
}

/// What reads the elements of a list.
pub(super) trait Items {
    /// For errors: "a list of nodes".
    const WHAT: &'static str;

    /// Reads element `index`; the path has it already.
    fn item<'de, D: Deserializer<'de>>(
        &mut self,
        index: usize,
        deserializer: D,
        path: &mut Path,
    ) -> Result<(), D::Error>;
}

/// Reads one list.
pub(super) struct ListSeed<'a, T>(pub(super) &'a mut T, pub(super) &'a mut Path);

impl<'de, T: Items> DeserializeSeed<'de> for ListSeed<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T: Items> Visitor<'de> for ListSeed<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::WHAT)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self(items, path) = self;
        let mut index = 0;
        let window = path.window.clone().filter(|_| path.steps.len() == 1);
        while list.next_element_seed(ItemSeed { items: &mut *items, index, path: &mut *path })?.is_some() {
            index += 1;
            if let Some(window) = &window {
                let buffered = window.each_element(|element| {
                    let json = &mut serde_json::Deserializer::from_slice(element);
                    ItemSeed { items: &mut *items, index, path: &mut *path }.deserialize(json)?;
                    index += 1;
                    Ok(())
                });
                buffered.map_err(A::Error::custom)?;
            }
        }
        Ok(())
    }
}

struct ItemSeed<'a, T> {
    items: &'a mut T,
    index: usize,
    path: &'a mut Path,
}

impl<'de, T: Items> DeserializeSeed<'de> for ItemSeed<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.path.index(self.index);
        self.items.item(self.index, deserializer, self.path)?;
        self.path.up();
        Ok(())
    }
}

/// Reads an integer of a range. A fraction is refused even if it is `.0`: integers are exact here.
#[derive(Clone, Copy)]
pub(super) struct Int(pub(super) u64, pub(super) u64);

impl<'de> DeserializeSeed<'de> for Int {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_u64(self)
    }
}

impl Visitor<'_> for Int {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an integer from {} to {}", self.0, self.1)
    }

    fn visit_u64<E: Error>(self, n: u64) -> Result<u64, E> {
        if (self.0..=self.1).contains(&n) { Ok(n) } else { Err(E::invalid_value(Unexpected::Unsigned(n), &self)) }
    }

    fn visit_i64<E: Error>(self, n: i64) -> Result<u64, E> {
        match u64::try_from(n) {
            Ok(n) => self.visit_u64(n),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(n), &self)),
        }
    }
}

/// Reads a text that is not empty into a buffer, in place of what it held.
pub(super) struct Text<'a>(pub(super) &'a mut String);

impl<'de> DeserializeSeed<'de> for Text<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Text<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text that is not empty")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if text.is_empty() {
            return Err(E::invalid_value(Unexpected::Str(text), &self));
        }
        self.0.clear();
        self.0.push_str(text);
        Ok(())
    }
}

/// Reads true or false.
pub(super) struct Flag;

impl<'de> DeserializeSeed<'de> for Flag {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_bool(self)
    }
}

impl Visitor<'_> for Flag {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true or false")
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<bool, E> {
        Ok(flag)
    }
}

/// Reads what `S` reads, or null for a field that might as well be absent.
pub(super) struct Maybe<S>(pub(super) S);

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Maybe<S> {
    type Value = Option<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de, S: DeserializeSeed<'de>> Visitor<'de> for Maybe<S> {
    type Value = Option<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        self.0.deserialize(deserializer).map(Some)
    }
}

/// Texts one after another in one buffer.
#[derive(Debug, Default)]
pub(super) struct Texts {
    text: String,
    ends: Vec<usize>,
    one: String,
}

impl Texts {
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All of them, in order.
    pub(super) fn all(&self) -> Vec<&str> {
        let mut start = 0;
        self.ends.iter().map(|&end| &self.text[std::mem::replace(&mut start, end)..end]).collect()
    }
}

impl Items for Texts {
    const WHAT: &'static str = "a list of texts";

    fn item<'de, D: Deserializer<'de>>(&mut self, _: usize, deserializer: D, _: &mut Path) -> Result<(), D::Error> {
        Text(&mut self.one).deserialize(deserializer)?;
        // Writing to a string cannot fail.
        let _ = self.text.write_str(&self.one);
        self.ends.push(self.text.len());
        Ok(())
    }
}
