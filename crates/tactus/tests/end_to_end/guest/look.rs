//! A guest's look at itself.

use std::collections::BTreeMap;

/// A look at what the plan touches.
#[derive(Debug, Default)]
pub struct Look {
    /// Sums of the files, by path: a sum is of every byte.
    pub sums: BTreeMap<String, String>,
    /// Their texts.
    pub texts: BTreeMap<String, String>,
    /// Threads by id.
    pub threads: BTreeMap<u32, Thread>,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    pub name: String,
    /// Policy and priority as numbers: `1 4` is FIFO 4.
    pub scheduling: String,
    pub cpus: String,
}

impl Look {
    /// Reads one. Lines that are cut, of processes that end while they are looked at, are left out.
    pub fn of(text: &str) -> Self {
        let mut look = Self::default();
        for line in text.lines() {
            let Some((kind, rest)) = line.split_once(' ') else { continue };
            match kind {
                "sum" => {
                    if let Some((sum, path)) = rest.split_once("  ") {
                        look.sums.insert(path.into(), sum.into());
                    }
                }
                "text" => drop(rest.split_once(':').map(|(path, line)| {
                    let text = look.texts.entry(path.into()).or_default();
                    text.push_str(line);
                    text.push('\n');
                })),
                "stat" => drop(look.stat(rest)),
                "cpus" => drop(look.cpus(rest)),
                _ => {}
            }
        }
        look
    }

    /// Fields 40 and 41 of proc_pid_stat(5); the first behind the name is 3.
    fn stat(&mut self, line: &str) -> Option<()> {
        let (id, rest) = line.split_once(" (")?;
        let (name, fields) = rest.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let thread = self.threads.entry(id.parse().ok()?).or_default();
        thread.name = name.to_owned();
        thread.scheduling = format!("{} {}", fields.get(38)?, fields.get(37)?);
        Some(())
    }

    fn cpus(&mut self, line: &str) -> Option<()> {
        let (path, cpus) = line.split_once(":Cpus_allowed_list:\t")?;
        let id = path.split('/').nth(2)?.parse().ok()?;
        self.threads.entry(id).or_default().cpus = cpus.to_owned();
        Some(())
    }

    /// A file's only line.
    pub fn text(&self, path: &str) -> &str {
        self.texts.get(path).map_or("(not there)", |text| text.trim_end())
    }

    /// The thread of this name.
    pub fn thread(&self, name: &str) -> &Thread {
        let found = self.threads.values().find(|thread| thread.name == name);
        found.unwrap_or_else(|| panic!("there is no thread {name}"))
    }

    /// Everything that differs from an earlier look. Workers come and go, and the thread of an interrupt follows it
    /// to the CPU that the kernel chooses among those allowed.
    pub fn differences(&self, earlier: &Self) -> Vec<String> {
        let mut all = Vec::new();
        for (path, sum) in &earlier.sums {
            if self.sums.get(path) != Some(sum) {
                all.push(format!("{path}: `{}`, was `{}`", self.text(path), earlier.text(path)));
            }
        }
        for (id, thread) in &earlier.threads {
            let lasting = !thread.name.starts_with("kworker/") && !thread.name.starts_with("irq/");
            if let Some(now) =
                self.threads.get(id).filter(|now| lasting && now.name == thread.name && now != &thread)
            {
                all.push(format!("{now:?}, was {thread:?}"));
            }
        }
        all
    }
}
