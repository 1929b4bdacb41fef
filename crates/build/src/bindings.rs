//! Constants, structures and enumerations of C headers for Rust code, as the C compiler computes
//! them.
//!
//! The C compiler translates a generated file to assembly. Each wanted value stands there as a line
//! of text, so nothing has to be run, and cross-compiling works. Linux computes its structure
//! offsets for assembly code in the same way.

use std::ffi::OsStr;
use std::fmt::Write;
use std::iter;
use std::process::Command;

use super::generate;

/// Begins each line of the assembly that holds a value.
const MARK: &str = "->";

/// Constants, structures and enumerations of C that a crate repeats in Rust.
///
/// Constants are generated; structures and enumerations are asserted. None of them can differ from
/// the headers without failing the build.
#[derive(Debug)]
pub struct Bindings {
    headers: String,
    constants: Vec<Constant>,
    types: Vec<Type>,
}

#[derive(Debug)]
struct Constant {
    rust: &'static str,
    c: &'static str,
}

/// A type of Rust that must agree with a type of C.
#[derive(Debug)]
struct Type {
    rust: &'static str,
    /// Definitions for the expressions of Rust.
    prelude: &'static str,
    /// C code that compiles only if the type has no values that Rust does not have.
    check: String,
    claims: Vec<Claim>,
}

/// Two expressions that must have the same value.
#[derive(Debug)]
struct Claim {
    rust: String,
    c: String,
}

const SIZE_OF_FIELD: &str = "    const fn size_of_field<S, F>(_: fn(&S) -> &F) -> usize {\n        \
                             ::core::mem::size_of::<F>()\n    }\n";

impl Bindings {
    /// Empty bindings for these headers. The other methods add to it.
    pub fn of(headers: &[&str]) -> Self {
        let headers = headers
            .iter()
            .map(|header| format!("#include <{header}>\n"));
        Self {
            headers: headers.collect(),
            constants: Vec::new(),
            types: Vec::new(),
        }
    }

    /// Generates a `const NAME: usize` for each of these C constants: macros or enumerators. None of
    /// them is negative.
    #[must_use]
    pub fn constants(mut self, names: &[&'static str]) -> Self {
        let constants = names.iter().map(|name| Constant {
            rust: name,
            c: name,
        });
        self.constants.extend(constants);
        self
    }

    /// Generates `const RUST: usize`, whose value is the integer constant expression `c`, which is not
    /// negative.
    #[must_use]
    pub fn constant(mut self, rust: &'static str, c: &'static str) -> Self {
        self.constants.push(Constant { rust, c });
        self
    }

    /// Asserts that the Rust structure `rust` is laid out as the C type `c`: size and alignment of
    /// the whole, offset and size of each field. A field that Rust calls differently is written
    /// `"trylock as try_lock"`.
    #[must_use]
    pub fn structure(mut self, rust: &'static str, c: &str, fields: &[&str]) -> Self {
        let mut claims = vec![
            Claim {
                rust: format!("::core::mem::size_of::<{rust}>()"),
                c: format!("sizeof({c})"),
            },
            Claim {
                rust: format!("::core::mem::align_of::<{rust}>()"),
                c: format!("_Alignof({c})"),
            },
        ];
        for (c_field, field) in fields.iter().map(|field| names(field)) {
            claims.push(Claim {
                rust: format!("::core::mem::offset_of!({rust}, {field})"),
                c: format!("offsetof({c}, {c_field})"),
            });
            claims.push(Claim {
                rust: format!("size_of_field(|structure: &{rust}| &structure.{field})"),
                c: format!("sizeof((({c} *)0)->{c_field})"),
            });
        }
        self.types.push(Type {
            rust,
            prelude: SIZE_OF_FIELD,
            check: String::new(),
            claims,
        });
        self
    }

    /// Asserts that the Rust enumeration `rust` has the values of the C enumeration `c`, and that
    /// these are all. Each value is written `"LW_CHECK_LOAD as Load"`.
    #[must_use]
    pub fn enumeration(mut self, rust: &'static str, c: &str, values: &[&str]) -> Self {
        let values = || values.iter().map(|value| names(value));
        let cases: String = values().map(|(c, _)| format!("\tcase {c}:\n")).collect();
        let claims = values().map(|(c, value)| Claim {
            rust: format!("{rust}::{value} as usize"),
            c: c.to_owned(),
        });
        self.types.push(Type {
            rust,
            prelude: "",
            check: format!(
                "void lw_all_of_{rust}({c} value);\n\
                 void lw_all_of_{rust}({c} value)\n{{\n\tswitch (value) {{\n{cases}\t\tbreak;\n\t}}\n}}\n"
            ),
            claims: claims.collect(),
        });
        self
    }

    /// Writes the constants to `NAME.rs` in `OUT_DIR`, and the assertions about each type to
    /// `layout_TYPE.rs`. The crate includes each where the names are in scope. A build script that
    /// writes more than one gives each another name.
    ///
    /// # Panics
    ///
    /// If the C compiler fails, or a value is negative.
    pub fn write(&self, name: &str, compiler: &cc::Build) {
        let mut values = emitted(&self.source(), name, compiler).into_iter();
        let mut next = || values.next().expect("a value for each that was asked for");
        let mut text = String::new();
        for Constant { rust, c } in &self.constants {
            let value = next();
            let _ = writeln!(text, "#[doc = \"`{c}` of the C headers.\"]");
            let _ = writeln!(text, "pub(crate) const {rust}: usize = {value};");
        }
        generate(&format!("{name}.rs"), &text);
        for type_ in &self.types {
            let file = format!("layout_{}.rs", type_.rust);
            generate(&file, &type_.assertions(&mut next));
        }
        assert!(values.next().is_none(), "a value that was not asked for");
    }

    /// The C code whose assembly has the values, in the order of constants and types.
    fn source(&self) -> String {
        let checks: String = self.types.iter().map(|t| t.check.as_str()).collect();
        let constants = self.constants.iter().map(|constant| constant.c);
        let claims = self.types.iter().flat_map(|t| &t.claims);
        let values: String = constants
            .chain(claims.map(|claim| claim.c.as_str()))
            .map(|value| format!("\tLW_EMIT({value});\n"))
            .collect();
        format!(
            "#include <stddef.h>\n{}\
             #define LW_EMIT(value) \\\n\
             \t__asm__ volatile(\"\\n.ascii \\\"-> %c0\\\"\\n\" : : \"i\" ((long long)(value)))\n\
             {checks}void lw_emit(void);\nvoid lw_emit(void)\n{{\n{values}}}\n",
            self.headers
        )
    }
}

/// The name in C and the name in Rust, from `"C as RUST"`, or the same name for both.
fn names(both: &str) -> (&str, &str) {
    both.split_once(" as ").unwrap_or((both, both))
}

impl Type {
    fn assertions(&self, mut next: impl FnMut() -> u64) -> String {
        let mut text = format!("const _: () = {{\n{}", self.prelude);
        for Claim { rust, .. } in &self.claims {
            let value = next();
            let _ = writeln!(
                text,
                "    assert!({rust} == {value}, \"C has another {rust}\");"
            );
        }
        text += "};\n";
        text
    }
}

/// The values that `source` emits, in its order.
fn emitted(source: &str, name: &str, compiler: &cc::Build) -> Vec<u64> {
    let from = generate(&format!("{name}.c"), source);
    let to = from.with_extension("s");
    let mut command: Command = compiler.get_compiler().to_command();
    command
        // Functions that headers declare may be static, and are not defined here.
        .args([
            "-O1",
            "-fno-lto",
            "-Wno-error",
            "-Werror=switch",
            "-S",
            "-o",
        ])
        .arg(&to)
        .arg(&from);
    // The environment, which a `Command` shows too, may be long, and may have secrets.
    let shown = iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ");
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("cannot run the C compiler: {error}: {shown}"));
    assert!(status.success(), "the C compiler failed: {status}: {shown}");
    let assembly =
        std::fs::read_to_string(&to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
    assembly
        .lines()
        .filter_map(|line| line.split_once(MARK)?.1.trim().strip_suffix('"'))
        .map(|value| {
            value
                .parse()
                .unwrap_or_else(|error| panic!("{value}: {error}; a value must not be negative"))
        })
        .collect()
}
