//! Kernel configurations: the options that are requested, and a check that the kernel's rules allow them.

use include_dir::{Dir, include_dir};

use super::arch::Arch;
use super::error::{Error, Result};
use super::kconfig::{Kconfig, Values};
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

/// Checks that each requested option has its value in the configuration that the kernel made. `rules`
/// reads the Kconfig files that it was made by.
pub(crate) fn check(requested: &str, config: &str, rules: impl FnOnce() -> Kconfig) -> Result<()> {
    let got: Values = settings(config)
        .filter_map(|(symbol, value)| Some((symbol.strip_prefix("CONFIG_")?, value)))
        .collect();
    let of = |symbol: &str| got.get(symbol).copied().unwrap_or("n");
    let unmet: Vec<(&str, &str)> = settings(requested)
        .filter_map(|(symbol, wanted)| Some((symbol.strip_prefix("CONFIG_")?, wanted)))
        .filter(|(symbol, wanted)| of(symbol) != *wanted)
        .collect();
    if unmet.is_empty() {
        return Ok(());
    }
    let rules = rules();
    let names: Vec<&str> = unmet.iter().map(|(symbol, _)| *symbol).collect();
    let (following, first): (Vec<_>, Vec<_>) = unmet
        .into_iter()
        .partition(|(symbol, wanted)| rules.follows(symbol, wanted, &got, &names));
    let mut refusals: Vec<String> = first
        .into_iter()
        .map(|(symbol, wanted)| {
            let why = rules.reason(symbol, wanted, &got);
            let why = why.map_or(String::new(), |why| format!(" ({why})"));
            format!("CONFIG_{symbol}={wanted} became {}{why}", of(symbol))
        })
        .collect();
    if !following.is_empty() {
        let names = following
            .iter()
            .map(|(symbol, _)| format!("CONFIG_{symbol}"));
        let names: Vec<String> = names.collect();
        refusals.push(format!("what needs these is off too: {}", names.join(", ")));
    }
    Err(Error::Refused(format!(
        "the Kconfig rules of the tree do not allow the configuration of the guests: {}; change these rules, \
         or give another --config or --tree",
        refusals.join("; ")
    )))
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
        let no_rules = || panic!("they are read for nothing");
        check(requested, good, no_rules).unwrap();
        check(
            requested,
            &good.replace("# CONFIG_B is not set\n", ""),
            no_rules,
        )
        .unwrap();

        let bad = "CONFIG_A=y\nCONFIG_B=y\nCONFIG_D=y\n";
        let none = check(requested, bad, Kconfig::default)
            .unwrap_err()
            .to_string();
        for part in [
            "CONFIG_B=n became y (this tree has no such symbol); ",
            "CONFIG_C=256 became n",
            "CONFIG_D=m became y",
        ] {
            assert!(none.contains(part), "{none}");
        }
    }

    #[test]
    fn the_excluding_symbol_is_named() {
        let tree = tempfile::tempdir().unwrap();
        std::fs::write(
            tree.path().join("Kconfig"),
            "config NUMA_AWARE_SPINLOCKS\n\tbool \"x\"\n\tdepends on NUMA && !OTHER_SPINLOCKS\n\
             config HQSPINLOCKS\n\tbool \"x\"\n\tdepends on NUMA_AWARE_SPINLOCKS\n",
        )
        .unwrap();
        let said = check(
            "CONFIG_HQSPINLOCKS=y\nCONFIG_NUMA_AWARE_SPINLOCKS=y\n",
            "CONFIG_NUMA=y\nCONFIG_OTHER_SPINLOCKS=y\n",
            || Kconfig::read(tree.path(), Arch::X86_64),
        )
        .unwrap_err()
        .to_string();
        assert_eq!(
            said,
            "the Kconfig rules of the tree do not allow the configuration of the guests: \
             CONFIG_NUMA_AWARE_SPINLOCKS=y became n (it needs !OTHER_SPINLOCKS, but \
             CONFIG_OTHER_SPINLOCKS=y); what needs these is off too: CONFIG_HQSPINLOCKS; change these rules, or give another --config or --tree"
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
