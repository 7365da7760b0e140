// The data files that are built into the program. SPDX-License-Identifier: Apache-2.0
#pragma once

namespace fuse::bench {

const char* cases_json();        ///< bench/cases.json
const char* schema_json();       ///< bench/schema.json
const char* sass_schema_json();  ///< bench/sass_table/schema.json

}  // namespace fuse::bench
