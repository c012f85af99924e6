// SPDX-License-Identifier: MIT
//
// The former name of the map of map.h.
#ifndef TIDE_CORE_BASE_ID_MAP_H
#define TIDE_CORE_BASE_ID_MAP_H

#include "core/base/map.h"

typedef tide_map tide_id_map;
#define TIDE_ID_MAP TIDE_MAP
#define tide_id_map_find tide_map_find
#define tide_id_map_put tide_map_put
#define tide_id_map_take tide_map_take
#define tide_id_map_at tide_map_at
#define tide_id_map_deinit tide_map_deinit

#endif
