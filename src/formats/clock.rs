//! Times as traces write them.

use jiff::Timestamp;
use jiff::civil::DateTime;

/// What a time looks like, for errors.
pub(super) const EXAMPLE: &str = "a time such as 2017-10-09 07:01:55";

/// The seconds from 1970 to a time such as `2017-10-09 07:01:55`, or with a `T` instead of the blank. With an offset
/// behind it (`+08:00`, `Z`) it is exact; without one it is taken as if it stood in UTC, so that differences are right but
/// where the clocks changed in between.
pub(super) fn seconds(text: &str) -> Option<i64> {
    let with_t = text.as_bytes().get(10) == Some(&b'T');
    let local = if with_t { "%Y-%m-%dT%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    if let Ok(at) = DateTime::strptime(local, text) {
        return Some(at.duration_since(DateTime::constant(1970, 1, 1, 0, 0, 0, 0)).as_secs());
    }
    let exact = if with_t { "%Y-%m-%dT%H:%M:%S%.f%:z" } else { "%Y-%m-%d %H:%M:%S%.f%:z" };
    let text = text.strip_suffix('Z').map_or_else(|| text.to_owned(), |head| format!("{head}+00:00"));
    Timestamp::strptime(exact, &text).ok().map(|at| at.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_and_without_an_offset() {
        let noon = 1_507_550_400;
        for text in [
            "2017-10-09 12:00:00",
            "2017-10-09T12:00:00",
            "2017-10-09 20:00:00+08:00",
            "2017-10-09T12:00:00Z",
            "2017-10-09 12:00:00+00:00",
            "2017-10-09T04:00:00.25-08:00",
        ] {
            assert_eq!(seconds(text), Some(noon), "{text}");
        }
        assert_eq!(seconds("1969-12-31 23:59:59"), Some(-1));
        for text in
            ["", "2017-10-09", "2017-13-09 12:00:00", "2017-10-09 12:00:00 PDT", "12:00", "2017-10-09 12:00:00+"]
        {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
