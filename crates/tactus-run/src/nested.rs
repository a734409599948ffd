//! An environment in which others run: its system by way of its probe, a guardian that takes back changes made there,
//! and a place for files.

use std::io;
use std::path::PathBuf;

use tactus_system::guardian::{Guardian, Workspace};
use tactus_system::{Remote, System};

/// The means by which an environment runs inside another one.
pub struct Nest {
    /// The system of the outer one.
    pub system: Remote,
    /// Takes back what is made there.
    pub guardian: Guardian,
    workspace: Workspace,
}

impl Nest {
    /// Makes it on the system of the environment `name`.
    ///
    /// # Errors
    /// When the probe there does not do its part.
    pub fn make(system: Remote, guardian: &Guardian, name: &str) -> io::Result<Self> {
        let guardian = guardian.within(&system, name)?;
        let workspace = guardian.workspace()?;
        Ok(Self { system, guardian, workspace })
    }

    /// A private directory there for one environment.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn workspace(&self, slug: &str) -> io::Result<PathBuf> {
        let dir = self.workspace.path().join(slug);
        self.system.make_dir(&dir)?;
        Ok(dir)
    }
}
