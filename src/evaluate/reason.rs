//! Why a candidate is infeasible.

macro_rules! reasons {
    ($($(#[doc = $doc:literal])* $variant:ident = $number:literal, $name:literal;)*) => {
        /// Why a candidate is infeasible. The order is the order of precedence: of several, the first is reported.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u32)]
        pub enum Reason {
            $($(#[doc = $doc])* $variant = $number,)*
        }

        impl Reason {
            /// All of them, in order.
            pub const ALL: &[Reason] = &[$(Reason::$variant),*];

            /// The word in reports.
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$variant => $name),* }
            }
        }
    };
}

reasons! {
    /// There is no such job in the queue; or it runs already.
    UnknownJob = 1, "unknown-job";
    /// There is no such node.
    UnknownNode = 2, "unknown-node";
    /// What is to be moved does not run.
    NotRunning = 3, "not-running";
    /// What is to be moved must not be.
    NotMigratable = 4, "not-migratable";
    /// Not as many instances, or not as many devices for one, as the job says.
    WrongCount = 5, "wrong-count";
    /// A device past the node's last, a device listed twice, or an instance moved twice.
    BadIndex = 6, "bad-index";
    /// A broken device.
    UnavailableGpu = 7, "unavailable-gpu";
    /// The node takes no new instances.
    Unschedulable = 8, "unschedulable";
    /// The node's model is none that the job allows.
    WrongModel = 9, "wrong-model";
    /// The instances would not lie in one domain or rack, as the job says.
    Topology = 10, "topology";
    /// A device is held by somebody, taken twice by the candidate, or there are not enough free ones.
    GpuBusy = 11, "gpu-busy";
    /// Not enough free CPU on a node.
    NoCpu = 12, "no-cpu";
    /// Not enough free memory on a node.
    NoMemory = 13, "no-memory";
}

impl Reason {
    /// The number in a score row; 0 there means feasible.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The reason of this number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get((number as usize).wrapping_sub(1)).copied()
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_lead_back() {
        for (position, &reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(reason.number() as usize, position + 1);
            assert_eq!(Reason::from_number(reason.number()), Some(reason));
        }
        assert_eq!(Reason::from_number(0), None);
        assert_eq!(Reason::from_number(99), None);
    }
}
