//! JSON, one value a line.

use serde::Serialize;

/// Appends a value as one line of JSON.
///
/// # Errors
/// If the value cannot be written as JSON, which none of this program's can.
pub fn append_line<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) -> Result<(), serde_json::Error> {
    serde_json::to_writer(&mut *out, value)?;
    out.push(b'\n');
    Ok(())
}
