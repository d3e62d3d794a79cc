//! Numbers for people.

use std::time::Duration;

/// An integer with its thousands set apart, as in `1,048,576`.
pub fn grouped(n: impl Into<i128>) -> String {
    let n: i128 = n.into();
    let digits = n.unsigned_abs().to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3 + 1);
    if n < 0 {
        out.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// So many of something, as in `1 GPU` or `1,024 GPUs`.
pub(super) fn counted(n: impl Into<i128>, one: &str) -> String {
    let n: i128 = n.into();
    let s = if n == 1 { "" } else { "s" };
    format!("{} {one}{s}", grouped(n))
}

/// An amount of GPUs, such as [`asked`] writes it, with its noun: `1 GPU`, `0.25 GPUs`.
pub fn gpus(amount: &str) -> String {
    let s = if amount == "1" { "" } else { "s" };
    format!("{amount} GPU{s}")
}

/// What an instance asks for: GPUs, or a share of one in thousandths as a decimal fraction, as in `0.25`.
pub fn asked(gpus: u8, gpu_milli: u16) -> String {
    match gpu_milli {
        ..1000 => format!("0.{gpu_milli:03}").trim_end_matches('0').to_owned(),
        _ => gpus.to_string(),
    }
}

/// A number of thousandths as a decimal number, as in `1,234.500`.
pub(super) fn thousandths(n: u64) -> String {
    format!("{}.{:03}", grouped(n / 1000), n % 1000)
}

/// An integer with its sign, or `0`: what a change is written as.
pub(super) fn signed(n: i64) -> String {
    if n > 0 { format!("+{}", grouped(n)) } else { grouped(n) }
}

/// A part of a whole in percent with one decimal, rounded down so that only all of it is 100 %; `-` of nothing.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let tenths = u128::from(part) * 1000 / u128::from(whole);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// A rate or an amount with three digits and a prefix, as in `1.25 M`.
pub fn rate(value: f64) -> String {
    let (scaled, prefix) = match value.abs() {
        v if v >= 1e12 => (value / 1e12, " T"),
        v if v >= 1e9 => (value / 1e9, " G"),
        v if v >= 1e6 => (value / 1e6, " M"),
        v if v >= 1e3 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let decimals = if scaled.abs() >= 100.0 || scaled == scaled.trunc() && prefix.is_empty() {
        0
    } else if scaled.abs() >= 10.0 {
        1
    } else {
        2
    };
    format!("{scaled:.decimals$}{prefix}")
}

/// A duration with three digits, as in `12.3 ms`.
pub fn seconds(time: Duration) -> String {
    let (value, unit) = match time.as_secs_f64() {
        s if s >= 120.0 => (s / 60.0, "min"),
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "µs"),
        s => (s * 1e9, "ns"),
    };
    let decimals = if unit == "ns" || value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_grouped() {
        let texts: Vec<String> = [0, 7, 999, 1000, -1000, 1_234_567].map(|n: i64| grouped(n)).into();
        assert_eq!(texts, ["0", "7", "999", "1,000", "-1,000", "1,234,567"]);
        assert_eq!([thousandths(0), thousandths(250), thousandths(1_234_567)], ["0.000", "0.250", "1,234.567"]);
        assert_eq!([signed(-2), signed(0), signed(3)], ["-2", "0", "+3"]);
    }

    #[test]
    fn one_is_no_plural() {
        let texts: Vec<String> = [0, 1, 2, 1000].map(|n: i64| counted(n, "GPU")).into();
        assert_eq!(texts, ["0 GPUs", "1 GPU", "2 GPUs", "1,000 GPUs"]);
        assert_eq!([gpus("1"), gpus("0.1"), gpus("4")], ["1 GPU", "0.1 GPUs", "4 GPUs"]);
    }

    #[test]
    fn percent_never_rounds_up_to_all() {
        assert_eq!(percent(1, 0), "-");
        assert_eq!(percent(1, 8), "12.5 %");
        assert_eq!(percent(99_999, 100_000), "99.9 %");
        assert_eq!(percent(u64::MAX, u64::MAX), "100.0 %");
    }

    #[test]
    fn rates_and_times_have_three_digits() {
        assert_eq!(
            [rate(0.0), rate(12.0), rate(1250.0), rate(3.2e7), rate(1e12)].join("|"),
            "0|12|1.25 k|32.0 M|1.00 T"
        );
        assert_eq!(seconds(Duration::from_nanos(120)), "120 ns");
        assert_eq!(seconds(Duration::from_micros(12_300)), "12.3 ms");
        assert_eq!(seconds(Duration::from_secs(3600)), "60.0 min");
    }
}
