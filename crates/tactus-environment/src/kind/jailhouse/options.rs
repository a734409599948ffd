//! The keys of a cell's table in the plan.

use tactus_model::plan;

use crate::support;
use crate::{OptionError, OptionKey};

/// The value of `console` for an inmate that writes to the hypervisor's own console.
pub const HYPERVISOR: &str = "hypervisor";

/// See [`crate::Environment::options`].
pub const KEYS: &[OptionKey] = &[
    OptionKey {
        name: "system",
        about: "the system configuration (.cell) to enable Jailhouse with; default: none, Jailhouse must be \
            enabled already",
    },
    OptionKey {
        name: "cell",
        about: "the configuration (.cell) of the cell; default: none, and there is no cell to start",
    },
    OptionKey {
        name: "kernel",
        about: "the inmate's kernel: a path (Image, bzImage) or a name of `tactus kernel list`; default: \
            none, and there is nothing to run",
    },
    OptionKey { name: "dtb", about: "the inmate's device tree, which Arm needs; default: none" },
    OptionKey {
        name: "cmdline",
        about: "words of the inmate's kernel command line; its last `console=` is the UART of `console`; \
            default: none, and the device tree names the UART",
    },
    OptionKey {
        name: "console",
        about: "where the inmate's console is read in the root cell: a terminal, a UNIX socket, host:port, \
            or `hypervisor`; default: hypervisor",
    },
    OptionKey { name: "baud", about: "speed of a `console` that is a terminal; default: 115200" },
    OptionKey {
        name: "input",
        about: "false: `console` sends nothing to the inmate, whose job is in its initramfs; default: true, \
            except for `hypervisor`",
    },
    OptionKey { name: "command", about: "the jailhouse command; default: jailhouse" },
    OptionKey {
        name: "enable",
        about: "false: tactus never enables Jailhouse; default: true, and it is disabled again at the end",
    },
];

/// The values of those keys.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    pub system: Option<&'a str>,
    pub cell: Option<&'a str>,
    pub kernel: Option<&'a str>,
    pub dtb: Option<&'a str>,
    pub cmdline: &'a str,
    pub console: &'a str,
    /// Bits per second.
    pub baud: u32,
    /// Whether the inmate hears what is written to its console.
    pub input: bool,
    pub command: &'a str,
    pub enable: bool,
}

impl<'a> Options<'a> {
    /// # Errors
    /// The first value that cannot be.
    pub fn of(spec: &'a plan::Environment) -> Result<Self, OptionError> {
        let path = |key| support::text(spec, key, "the path of a file");
        let console = support::text(spec, "console", "a device, a socket, host:port, or hypervisor")?
            .unwrap_or(HYPERVISOR);
        let input = support::boolean(spec, "input")?;
        if console == HYPERVISOR && input == Some(true) {
            return Err(OptionError {
                key: "input".into(),
                message: "`input` cannot be true: the hypervisor's console only carries output of a cell"
                    .into(),
                hint: "leave out `input`, or name the UART of the inmate in `console`".into(),
            });
        }
        Ok(Self {
            system: path("system")?,
            cell: path("cell")?,
            kernel: support::text(spec, "kernel", "a path, or a name of `tactus kernel list`")?,
            dtb: path("dtb")?,
            cmdline: support::text(spec, "cmdline", "a text of kernel parameters")?.unwrap_or_default(),
            console,
            baud: baud(spec)?.unwrap_or(115_200),
            input: input.unwrap_or(console != HYPERVISOR),
            command: support::text(spec, "command", "a command, as jailhouse")?.unwrap_or("jailhouse"),
            enable: support::boolean(spec, "enable")?.unwrap_or(true),
        })
    }
}

fn baud(spec: &plan::Environment) -> Result<Option<u32>, OptionError> {
    let Some(value) = spec.options.get("baud") else { return Ok(None) };
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
    number.map(Some).ok_or_else(|| OptionError {
        key: "baud".into(),
        message: format!("`baud` cannot be {value}"),
        hint: "a number of bits per second, as 115200".into(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(options: serde_json::Value) -> plan::Environment {
        let options = serde_json::from_value(options).unwrap();
        plan::Environment { kind: "jailhouse".into(), options, ..plan::Environment::default() }
    }

    #[test]
    fn the_hypervisors_console_is_one_way_and_a_uart_is_not() {
        let input = |options| Options::of(&spec(options)).unwrap().input;
        assert!(!input(json!({})));
        assert!(input(json!({"console": "/dev/ttyUSB0"})));
        assert!(!input(json!({"console": "/dev/ttyUSB0", "input": false})));
        assert_eq!(Options::of(&spec(json!({"input": true}))).unwrap_err().key, "input");
    }

    #[test]
    fn values_that_cannot_be_are_named() {
        for (options, key) in
            [(json!({"baud": "fast"}), "baud"), (json!({"baud": 0}), "baud"), (json!({"cell": 3}), "cell")]
        {
            let spec = spec(options);
            let error = Options::of(&spec).unwrap_err();
            assert_eq!(error.key, key);
            assert!(!error.hint.is_empty());
        }
    }
}
