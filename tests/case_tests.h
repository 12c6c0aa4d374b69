// The kinds of cases that smelt_case_tests runs; each takes its files and flags, prints what fails
// and a count, and gives the exit status.
#pragma once

namespace smelt {

int OpTests(int argc, char** argv);
int ShapeTests(int argc, char** argv);
int SessionTests(int argc, char** argv);
int PassTests(int argc, char** argv);
int ProgramTests(int argc, char** argv);
int GrapplerTests(int argc, char** argv);
int RowTests(int argc, char** argv);
int OpRowTests(int argc, char** argv);
int OpLiteTests(int argc, char** argv);
int OpProgramTests(int argc, char** argv);
int EstimateTests(int argc, char** argv);
int ConvertTests(int argc, char** argv);
int LiteTests(int argc, char** argv);

}  // namespace smelt
