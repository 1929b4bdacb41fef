//! Kernel configurations: the options that are requested, and a check that the kernel's rules allow them.

use std::collections::HashMap;

use include_dir::{Dir, include_dir};

use super::arch::Arch;
use super::error::{Error, Result};
use super::variant::Variant;
use super::version::Version;

/// Configurations and scripts of the guests.
pub(crate) static GUEST: Dir = include_dir!("$CARGO_MANIFEST_DIR/guest");

/// All requested options, in the kernel's own format.
pub(crate) fn requested(
    arch: Arch,
    version: Version,
    variant: Variant,
    statistics: bool,
) -> String {
    let statistics = statistics.then(|| "statistics".to_owned());
    [
        "base".to_owned(),
        version.to_string(),
        arch.to_string(),
        format!("{arch}-{version}"),
        variant.to_string(),
        format!("{arch}-{variant}"),
    ]
    .into_iter()
    .chain(statistics)
    .filter_map(|name| GUEST.get_file(format!("{name}.config"))?.contents_utf8())
    .collect()
}

/// Checks that each requested option has its value in the configuration that the kernel made.
pub(crate) fn check(requested: &str, config: &str) -> Result<()> {
    let got: HashMap<&str, &str> = settings(config).collect();
    let unmet: Vec<String> = settings(requested)
        .filter_map(|(symbol, wanted)| {
            let got = got.get(symbol).copied().unwrap_or("n");
            (got != wanted).then(|| format!("{symbol}={wanted} became {got}"))
        })
        .collect();
    match unmet.is_empty() {
        true => Ok(()),
        false => Err(Error::Refused(format!(
            "the kernel's rules do not allow the requested configuration: {}",
            unmet.join(", ")
        ))),
    }
}

fn settings(config: &str) -> impl Iterator<Item = (&str, &str)> {
    config
        .lines()
        .filter(|line| line.starts_with("CONFIG_"))
        .filter_map(|line| line.split_once('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_symbol_is_looked_at() {
        let requested = "# why\nCONFIG_A=y\nCONFIG_B=n\nCONFIG_C=256\nCONFIG_D=m\n";
        let good = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_C=256\nCONFIG_D=m\nCONFIG_E=y\n";
        check(requested, good).unwrap();
        check(requested, &good.replace("# CONFIG_B is not set\n", "")).unwrap();

        let bad = "CONFIG_A=y\nCONFIG_B=y\nCONFIG_D=y\n";
        assert_eq!(
            check(requested, bad).unwrap_err().to_string(),
            "the kernel's rules do not allow the requested configuration: \
             CONFIG_B=n became y, CONFIG_C=256 became n, CONFIG_D=m became y"
        );
    }

    fn all() -> impl Iterator<Item = (Arch, Version, Variant)> {
        Arch::ALL.into_iter().flat_map(|arch| {
            Version::ALL.into_iter().flat_map(move |version| {
                let variants = arch.variants().iter();
                variants.map(move |variant| (arch, version, *variant))
            })
        })
    }

    #[test]
    fn variants_differ_where_they_should() {
        for (arch, version, variant) in all() {
            let requested = requested(arch, version, variant, true);
            let has = |line| requested.lines().any(|l| l == line);
            assert!(has("CONFIG_LOCK_TORTURE_TEST=m"));
            assert!(has("CONFIG_NUMA_AWARE_SPINLOCKS=y"));
            assert_eq!(has("CONFIG_HYPERVISOR_GUEST=y"), arch == Arch::X86_64);
            assert_eq!(has("CONFIG_SERIAL_AMBA_PL011=y"), arch == Arch::Arm64);
            let pv = has("CONFIG_PARAVIRT_SPINLOCKS=y");
            assert_eq!(pv, variant == Variant::Paravirt);
            let debug = has("CONFIG_PROVE_LOCKING=y");
            assert_eq!(debug, variant == Variant::Debug);
        }
    }

    #[test]
    fn nothing_is_asked_for_twice() {
        for (arch, version, variant) in all() {
            let all = requested(arch, version, variant, true);
            let symbols: Vec<&str> = settings(&all).map(|(symbol, _)| symbol).collect();
            let distinct: std::collections::HashSet<_> = symbols.iter().collect();
            assert_eq!(distinct.len(), symbols.len());
        }
    }
}
