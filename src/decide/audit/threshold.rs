//! Measures of an audit that a user may set a limit to, compared exactly.

use std::fmt;
use std::str::FromStr;

use super::Audit;

/// What a limit is set to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// SIF: the share of avoidable partial nodes.
    Sif,
    /// N·SIF: avoidable partial nodes.
    NSif,
    /// F: the share of partial nodes.
    F,
    /// Free GPUs that are stranded, by whatever cause.
    Stranded,
    /// Nodes outside Σ.
    OutsideAbs,
    /// Jobs that wait though enough GPUs are free.
    Pending,
}

impl Measure {
    /// All of them.
    pub const ALL: [Self; 6] = [Self::Sif, Self::NSif, Self::F, Self::Stranded, Self::OutsideAbs, Self::Pending];

    /// The word on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sif => "sif",
            Self::NSif => "n-sif",
            Self::F => "f",
            Self::Stranded => "stranded",
            Self::OutsideAbs => "outside-abs",
            Self::Pending => "pending",
        }
    }

    /// Its value, as a fraction. `None` of waiting jobs if nobody said which wait.
    fn of(self, audit: &Audit) -> Option<(i128, u64)> {
        let total = &audit.total;
        let nodes = total.nodes.max(1);
        Some(match self {
            Self::Sif => (total.n_sif().into(), nodes),
            Self::NSif => (total.n_sif().into(), 1),
            Self::F => (total.partial.into(), nodes),
            Self::Stranded => (total.stranded.gpus().into(), 1),
            Self::OutsideAbs => (total.outside_abs.len() as i128, 1),
            Self::Pending => (audit.pending.as_ref()?.though_free().into(), 1),
        })
    }
}

/// A limit: a measure, and a decimal number that it is not to exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threshold {
    /// What is limited.
    pub measure: Measure,
    /// The number is this over `10^decimals`.
    digits: u64,
    decimals: u32,
}

/// The most digits of a limit, before and after the point together.
const MOST_DIGITS: usize = 18;

impl Threshold {
    /// Why the audit exceeds it, in a few words; `None` if it does not, or cannot say.
    pub fn crossed(&self, audit: &Audit) -> Option<String> {
        let (part, whole) = self.measure.of(audit)?;
        let exceeds = part * 10i128.pow(self.decimals) > i128::from(self.digits) * i128::from(whole);
        let value = if whole == 1 { part.to_string() } else { format!("{part}/{whole}") };
        exceeds.then(|| format!("found {} = {value}, expected at most {}", self.measure.name(), self.limit()))
    }

    fn limit(&self) -> String {
        let scale = 10u64.pow(self.decimals);
        match self.decimals {
            0 => self.digits.to_string(),
            n => format!("{}.{:0width$}", self.digits / scale, self.digits % scale, width = n as usize),
        }
    }
}

/// What is no limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "found \"{0}\", expected a decimal number such as 0.05, of SIF, or MEASURE=NUMBER with one of {names}",
    names = Measure::ALL.map(Measure::name).join(", ")
)]
pub struct NoThreshold(String);

impl FromStr for Threshold {
    type Err = NoThreshold;

    /// `NUMBER`, of SIF, or `MEASURE=NUMBER`.
    fn from_str(text: &str) -> Result<Self, NoThreshold> {
        let wrong = || NoThreshold(text.to_owned());
        let (name, number) = text.split_once('=').unwrap_or((Measure::Sif.name(), text));
        let measure = Measure::ALL.into_iter().find(|measure| measure.name() == name).ok_or_else(wrong)?;
        let (whole, part) = number.split_once('.').unwrap_or((number, ""));
        let digits = format!("{whole}{part}");
        let is_number = !whole.is_empty() && part.is_empty() != number.contains('.');
        let is_plain = digits.len() <= MOST_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
        let digits = digits.parse().ok().filter(|_| is_number && is_plain).ok_or_else(wrong)?;
        Ok(Self { measure, digits, decimals: part.len() as u32 })
    }
}

impl fmt::Display for Threshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.measure.name(), self.limit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_or_refused() {
        for (text, same) in [("0.05", "sif=0.05"), ("7", "sif=7"), ("n-sif=0", "n-sif=0"), ("f=0.500", "f=0.500")] {
            assert_eq!(text.parse::<Threshold>().map(|read| read.to_string()), Ok(same.to_owned()));
        }
        for bad in ["", "=1", "sif=", "sif=-1", "sif=.5", "sif=1.", "1e3", "x=1", "sif=1=2", "9999999999999999999"] {
            let error = bad.parse::<Threshold>().unwrap_err().to_string();
            assert!(error.contains(&format!("{bad:?}")) && error.contains("outside-abs"), "{error}");
        }
    }

    #[test]
    fn a_value_is_compared_as_a_fraction() {
        let mut audit = Audit::default();
        (audit.total.nodes, audit.total.partial, audit.total.phi_star) = (3, 2, 1);
        let crossed = |text: &str| text.parse::<Threshold>().unwrap().crossed(&audit);
        // 1/3 lies between these two.
        assert_eq!(crossed("0.33333333333333334"), None);
        let told = "found sif = 1/3, expected at most 0.33333333333333333";
        assert_eq!(crossed("0.33333333333333333").as_deref(), Some(told));
        assert_eq!(crossed("n-sif=1"), None);
        assert!(crossed("n-sif=0").is_some() && crossed("f=0.6").is_some());
        assert_eq!(crossed("pending=0"), None);
    }
}
