//! How common instances of each size are.

/// A mix of instance sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mix {
    /// The GFS trace: 1 GPU 64.16 %, 2 or 4 6.07 %, 3, 5, 6 or 7 0.05 %, 8 29.73 %.
    #[default]
    Gfs,
    /// The Venus trace: 37.68 %, 9.44 %, 0.44 %, 52.44 %.
    Venus,
    /// Many 3, 5, 6 and 7, which waste slots: 30 %, 20 %, 40 %, 10 %.
    Hard,
}

impl Mix {
    /// All mixes.
    pub const ALL: [Self; 3] = [Self::Gfs, Self::Venus, Self::Hard];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gfs => "gfs",
            Self::Venus => "venus",
            Self::Hard => "hard",
        }
    }

    /// The mix of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mix| mix.name() == name)
    }

    /// Sizes and their weights among instances. Sizes of one group are equally common.
    pub fn weights(self) -> [(u8, u64); 8] {
        // In hundredths of a percent; the published shares of GFS add up to 100.01 %.
        let [one, two_four, odd, eight] = match self {
            Self::Gfs => [6416, 607, 5, 2973],
            Self::Venus => [3768, 944, 44, 5244],
            Self::Hard => [3000, 2000, 4000, 1000],
        };
        // Times 4, so that the groups of two and of four divide.
        let (two_four, odd) = (two_four * 2, odd);
        [(1, one * 4), (2, two_four), (3, odd), (4, two_four), (5, odd), (6, odd), (7, odd), (8, eight * 4)]
    }
}
