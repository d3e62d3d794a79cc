//! Typed indices. Each is a position in a table of the cluster, in file order, so that "lowest index" means something.

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// The position as a `usize`, to index a table.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(
    /// A node, numbered in file order.
    NodeId
);
id!(
    /// A job, running, queued or gone; numbered in the order of registration.
    JobId
);
id!(
    /// One instance of a job. The instances of a job are numbered without a gap.
    InstanceId
);
id!(
    /// A pool: all nodes of one capacity and model; numbered by first appearance.
    PoolId
);
id!(
    /// A GPU model name.
    ModelId
);
id!(
    /// An NVLink domain. Its identity is the pair of rack and domain name.
    DomainId
);
id!(
    /// A rack.
    RackId
);
id!(
    /// A request that jobs share: see `Request`.
    RequestId
);
