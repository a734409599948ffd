//! Studies: plans that ship with tactus, one file each in `studies/`.

/// A study.
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its plan.
    pub text: &'static str,
}

macro_rules! studies {
    ($($name:literal),+ $(,)?) => {
        /// Every study. A test holds the directory against this table.
        pub static STUDIES: &[Study] = &[$(Study {
            name: $name,
            text: include_str!(concat!("../../../../studies/", $name, ".toml")),
        }),+];
    };
}

studies!(
    "freescale-qoriq-2014",
    "intel-industrial-2014",
    "intel-xeon-2015",
    "osadl-2023",
    "redhat-openstack-2018"
);

/// The study with this name.
#[must_use]
pub fn study(name: &str) -> Option<&'static Study> {
    STUDIES.iter().find(|study| study.name == name)
}
