//! Quantities as Kubernetes writes them: `8`, `1500m`, `512Mi`, `129M`, `1e9`.

/// A quantity, in thousandths, rounded up; at most 2^63 of them. `None` for what is no quantity.
pub(super) fn milli(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '+')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let (numerator, denominator) = factor(unit)?;
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() || digits.contains('+') {
        return None;
    }
    // Nine digits behind the point are all that the API keeps.
    let fraction = &fraction[..fraction.len().min(9)];
    let scale = 10_u128.pow(fraction.len() as u32);
    let number = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse::<u128>().ok() };
    let value = number(whole)?.checked_mul(scale)?.checked_add(number(fraction)?)?;
    let milli = value.checked_mul(1000)?.checked_mul(numerator)?.div_ceil(scale.checked_mul(denominator)?);
    u64::try_from(milli).ok().filter(|&milli| milli <= 1 << 63)
}

/// The factor of a unit: a numerator and a denominator.
fn factor(unit: &str) -> Option<(u128, u128)> {
    let binary = |power: u32| Some((1 << (10 * power), 1));
    let decimal = |power: u32| Some((10_u128.pow(3 * power), 1));
    match unit {
        "" => Some((1, 1)),
        "n" => Some((1, 1_000_000_000)),
        "u" => Some((1, 1_000_000)),
        "m" => Some((1, 1000)),
        "k" => decimal(1),
        "M" => decimal(2),
        "G" => decimal(3),
        "T" => decimal(4),
        "P" => decimal(5),
        "E" => decimal(6),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let exponent: i32 = unit.strip_prefix(['e', 'E'])?.parse().ok()?;
            let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
            Some(if exponent < 0 { (1, power) } else { (power, 1) })
        }
    }
}

/// A whole number; `None` for a fraction too.
pub(super) fn whole(text: &str) -> Option<u64> {
    milli(text).filter(|milli| milli.is_multiple_of(1000)).map(|milli| milli / 1000)
}

/// Bytes as MiB, rounded up.
pub(super) fn mebibytes(text: &str) -> Option<u64> {
    milli(text).map(|milli| milli.div_ceil(1000 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read() {
        for (text, expected) in [
            ("8", Some(8000)),
            ("1500m", Some(1500)),
            ("0.5", Some(500)),
            (".5", Some(500)),
            ("5.", Some(5000)),
            ("+1", Some(1000)),
            ("1e3", Some(1_000_000)),
            ("12E-1", Some(1200)),
            ("1k", Some(1_000_000)),
            ("100n", Some(1)),
            ("1.0000000001", Some(1000)),
            ("", None),
            (".", None),
            ("m", None),
            ("-1", None),
            ("1 Gi", None),
            ("1GB", None),
            ("1e99", None),
            ("1E", Some(1_000_000_000_000_000_000_000)),
            ("99999999999999999999Ei", None),
        ] {
            let fits = expected.and_then(|expected: u128| u64::try_from(expected).ok());
            assert_eq!(milli(text), fits, "{text}");
        }
        assert_eq!([whole("8"), whole("1e1"), whole("1500m"), whole("8.0")], [Some(8), Some(10), None, Some(8)]);
        assert_eq!(
            [mebibytes("512Mi"), mebibytes("129M"), mebibytes("1e9"), mebibytes("1")].map(Option::unwrap),
            [512, 124, 954, 1]
        );
        assert_eq!(mebibytes("2Ti"), Some(2 << 20));
    }
}
