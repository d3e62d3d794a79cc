//! What is sent, read strictly.

use std::borrow::Borrow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::formats::fields::Fields;
use crate::serve::fault::ServeError;

/// Reads a body, which is an object; an error names the path in it.
pub(in crate::serve) fn read<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, ServeError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let Fields(value) = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let place = error.path().to_string();
        let place = if matches!(place.as_str(), "." | "?") { String::new() } else { format!("{place}: ") };
        ServeError::Input(format!("{place}{}", error.inner()))
    })?;
    json.end().map_err(|error| ServeError::Input(error.to_string()))?;
    Ok(value)
}

/// Objects, a line each, for the readers of our formats.
pub(in crate::serve) fn lines<R: Borrow<RawValue>>(objects: &[R]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(objects.iter().map(|object| object.borrow().get().len() + 1).sum());
    for object in objects {
        // A line break is a blank in JSON, and never part of a text.
        lines.extend(object.borrow().get().bytes().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { byte }));
        lines.push(b'\n');
    }
    lines
}
