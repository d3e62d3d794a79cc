//! Axes of charts: where their marks stand and what is written there.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::super::number::grouped;

/// How values are laid out along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// Evenly.
    Linear,
    /// Evenly by the logarithm of 1 + value: 0 has a place, and small values are told apart beside large ones.
    Log,
}

/// An axis from 0 on.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::report) struct Axis {
    scale: Scale,
    /// Its end, and no less than its last mark.
    end: f64,
    marks: Vec<(f64, String)>,
}

/// Lengths of time that are marked on a logarithmic axis, in seconds.
const TIMES: [(f64, &str); 9] = [
    (0.0, "0"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3600.0, "1 h"),
    (36_000.0, "10 h"),
    (259_200.0, "3 d"),
    (2_592_000.0, "30 d"),
    (31_536_000.0, "1 y"),
];

/// Units of time: a name, and the seconds.
const UNITS: [(&str, f64); 4] = [("d", 86_400.0), ("h", 3600.0), ("min", 60.0), ("s", 1.0)];

impl Axis {
    /// Counts up to `most`.
    pub(in crate::report) fn counts(most: f64) -> Self {
        let step = nice_step(most).max(1.0);
        let end = (most / step).ceil().max(1.0) * step;
        Self::marked(Scale::Linear, end, multiples(step, end), |value| grouped(value.round() as i128))
    }

    /// Counts up to `most`, by their logarithm.
    pub(super) fn log_counts(most: f64) -> Self {
        // Of many decades only the powers of ten.
        let digits: &[f64] = if most > 1000.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let decades = (0..18).map(|power| 10f64.powi(power));
        let values = decades.flat_map(|decade| digits.iter().map(move |digit| digit * decade));
        let marks: Vec<f64> = std::iter::once(0.0).chain(values).collect();
        let end = marks.iter().copied().find(|&mark| mark >= most.max(2.0)).unwrap_or(most);
        let marks = marks.into_iter().filter(|&mark| mark <= end);
        Self::marked(Scale::Log, end, marks, |value| grouped(value.round() as i128))
    }

    /// Shares of a whole in percent.
    pub(super) fn percent() -> Self {
        Self::marked(Scale::Linear, 100.0, multiples(20.0, 100.0), |value| format!("{value:.0} %"))
    }

    /// Percentages up to `most`.
    pub(super) fn percent_to(most: f64) -> Self {
        let step = nice_step(most);
        let end = (most / step).ceil().max(1.0) * step;
        let decimals = usize::from(step < 1.0) + usize::from(step < 0.1);
        Self::marked(Scale::Linear, end, multiples(step, end), |value| format!("{value:.decimals$} %"))
    }

    /// Seconds up to `seconds`.
    pub(super) fn time(seconds: f64) -> Self {
        let fits = |&&(_, unit): &&(&str, f64)| seconds >= 3.0 * unit;
        let &(name, unit) = UNITS.iter().find(fits).unwrap_or(&UNITS[3]);
        let step = nice_step(seconds / unit).max(1.0) * unit;
        let text = |value: f64| match (value / unit).round() {
            0.0 => "0".to_owned(),
            n => format!("{} {name}", grouped(n as i128)),
        };
        Self::marked(Scale::Linear, seconds.max(1.0), multiples(step, seconds), text)
    }

    /// Lengths of time up to `seconds`, by their logarithm.
    pub(super) fn log_time(seconds: f64) -> Self {
        let end = seconds.max(10.0);
        let marks = TIMES.into_iter().filter(|&(at, _)| at <= end).map(|(at, text)| (at, text.to_owned()));
        Self { scale: Scale::Log, end, marks: marks.collect() }
    }

    fn marked(scale: Scale, end: f64, marks: impl Iterator<Item = f64>, text: impl Fn(f64) -> String) -> Self {
        Self { scale, end, marks: marks.map(|mark| (mark, text(mark))).collect() }
    }

    /// How far along a value is, in the measure of the scale.
    fn place(&self, value: f64) -> f64 {
        match self.scale {
            Scale::Linear => value,
            Scale::Log => value.ln_1p(),
        }
    }

    /// Where it ends.
    pub(super) fn end(&self) -> f64 {
        self.end
    }
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let share = self.place(*value) / self.place(self.end);
        from + (share * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.iter().map(|&(value, _)| value).collect()
    }

    fn range(&self) -> Range<f64> {
        0.0..self.end
    }
}

impl ValueFormatter<f64> for Axis {
    fn format_ext(&self, value: &f64) -> String {
        let mark = self.marks.iter().find(|(mark, _)| mark == value);
        mark.map_or(String::new(), |(_, text)| text.clone())
    }
}

fn multiples(step: f64, end: f64) -> impl Iterator<Item = f64> {
    (0..=(end / step + 1e-9) as u32).map(move |n| f64::from(n) * step)
}

/// 1, 2 or 5 times a power of ten, so that about five steps lead to `most`.
fn nice_step(most: f64) -> f64 {
    let raw = (most / 6.0).max(1e-3);
    let power = 10f64.powf(raw.log10().floor());
    let digit = [1.0, 2.0, 5.0].into_iter().find(|digit| digit * power >= raw * (1.0 - 1e-9)).unwrap_or(10.0);
    digit * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(axis: &Axis) -> Vec<f64> {
        axis.marks.iter().map(|&(value, _)| value).collect()
    }

    fn labels(axis: &Axis) -> String {
        marks(axis).iter().map(|mark| axis.format_ext(mark)).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn marks_are_few_and_round() {
        assert_eq!(labels(&Axis::counts(0.0)), "0|1");
        assert_eq!(labels(&Axis::counts(2.0)), "0|1|2");
        assert_eq!(labels(&Axis::counts(12_500.0)), "0|5,000|10,000|15,000");
        assert_eq!(labels(&Axis::log_counts(2.0)), "0|1|2");
        assert_eq!(labels(&Axis::log_counts(87.0)), "0|1|2|5|10|20|50|100");
        assert_eq!(labels(&Axis::log_counts(7_950.0)), "0|1|10|100|1,000|10,000");
        assert_eq!(labels(&Axis::percent()), "0 %|20 %|40 %|60 %|80 %|100 %");
        assert_eq!(labels(&Axis::percent_to(0.7)), "0.0 %|0.2 %|0.4 %|0.6 %|0.8 %");
        assert_eq!(labels(&Axis::time(0.0)), "0");
        assert_eq!(labels(&Axis::time(86_400.0 * 75.0)), "0|20 d|40 d|60 d");
        assert_eq!(labels(&Axis::time(132.0)), "0|50 s|100 s");
        assert_eq!(labels(&Axis::log_time(5_000_000.0)), "0|10 s|1 min|10 min|1 h|10 h|3 d|30 d");
        assert_eq!(marks(&Axis::log_counts(1e30)).len(), 1 + 18);
        let log = Axis::log_counts(87.0);
        assert_eq!([0.0, 9.0, 100.0].map(|value| log.map(&value, (200, 0))), [200, 100, 0]);
        for most in [0.0, 0.3, 1.0, 7.0, 99.0, 1e3, 1e6, 1e15] {
            assert!((2..10).contains(&marks(&Axis::counts(most)).len()), "{most}");
            assert!(Axis::counts(most).end() >= most);
            assert!((1..10).contains(&marks(&Axis::time(most)).len()), "{most}");
        }
    }
}
