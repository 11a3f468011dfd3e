#include "textflag.h"

// The kernels multiply and add in two roundings, in the order of the plain Go ones: the results are the same to the bit.
// What they need besides AVX2 stands in their names. Offsets into ·same are 32 times the places in constants.

#define LEAST  ·same+0(SB)
#define MOST   ·same+32(SB)
#define LOG2E  ·same+64(SB)
#define LN2HI  ·same+96(SB)
#define LN2LO  ·same+128(SB)
#define C6     ·same+160(SB)
#define C5     ·same+192(SB)
#define C4     ·same+224(SB)
#define C3     ·same+256(SB)
#define C2     ·same+288(SB)
#define ONE    ·same+320(SB)
#define BIASED ·same+352(SB)
#define CUBE   ·same+384(SB)
#define SLOPE  ·same+416(SB)
#define TINY   ·same+448(SB)

// e^Y0 in Y0; Y1, Y2 and Y3 are lost.
#define EXP \
	VMAXPS    LEAST, Y0, Y0; \
	VMINPS    MOST, Y0, Y0; \
	VMULPS    LOG2E, Y0, Y1; \
	VROUNDPS  $8, Y1, Y1; \
	VMULPS    LN2HI, Y1, Y2; \
	VADDPS    Y2, Y0, Y2; \
	VMULPS    LN2LO, Y1, Y3; \
	VADDPS    Y3, Y2, Y2; \
	VMOVUPS   C6, Y3; \
	VMULPS    Y2, Y3, Y3; \
	VADDPS    C5, Y3, Y3; \
	VMULPS    Y2, Y3, Y3; \
	VADDPS    C4, Y3, Y3; \
	VMULPS    Y2, Y3, Y3; \
	VADDPS    C3, Y3, Y3; \
	VMULPS    Y2, Y3, Y3; \
	VADDPS    C2, Y3, Y3; \
	VMULPS    Y2, Y3, Y3; \
	VADDPS    ONE, Y3, Y3; \
	VMULPS    Y2, Y3, Y3; \
	VADDPS    ONE, Y3, Y3; \
	VCVTPS2DQ Y1, Y1; \
	VPADDD    BIASED, Y1, Y1; \
	VPSLLD    $23, Y1, Y1; \
	VMULPS    Y1, Y3, Y0

// The sum of Y0's lanes in the first of X0; X1 is lost.
#define FOLD \
	VEXTRACTF128 $1, Y0, X1; \
	VADDPS       X1, X0, X0; \
	VPSHUFD      $0x0e, X0, X1; \
	VADDPS       X1, X0, X0; \
	VPSHUFD      $0x01, X0, X1; \
	VADDSS       X1, X0, X0

// The addresses of a tile's four rows, R8 bytes apart: SI, R10, R11, R12.
#define FOUR_ROWS \
	LEAQ (SI)(R8*1), R10;  \
	LEAQ (SI)(R8*2), R11;  \
	LEAQ (R10)(R8*2), R12

#define NEXT_FOUR_BYTES \
	ADDQ $4, SI;  \
	ADDQ $4, R10; \
	ADDQ $4, R11; \
	ADDQ $4, R12

// A tile's sums, two registers a row.
#define CLEAR \
	VXORPS Y0, Y0, Y0; \
	VXORPS Y1, Y1, Y1; \
	VXORPS Y2, Y2, Y2; \
	VXORPS Y3, Y3, Y3; \
	VXORPS Y4, Y4, Y4; \
	VXORPS Y5, Y5, Y5; \
	VXORPS Y6, Y6, Y6; \
	VXORPS Y7, Y7, Y7

// A tile's sums to four rows from DX on, R9 bytes apart.
#define STORE \
	VMOVUPS Y0, (DX); \
	VMOVUPS Y1, 32(DX); \
	ADDQ R9, DX; \
	VMOVUPS Y2, (DX); \
	VMOVUPS Y3, 32(DX); \
	ADDQ R9, DX; \
	VMOVUPS Y4, (DX); \
	VMOVUPS Y5, 32(DX); \
	ADDQ R9, DX; \
	VMOVUPS Y6, (DX); \
	VMOVUPS Y7, 32(DX)

// func matrixVNNI(y *int32, yStride int, x *uint8, stride int, w *int8, k4 int)
TEXT ·matrixVNNI(SB), NOSPLIT, $0-48
	MOVQ   y+0(FP), DX
	MOVQ   yStride+8(FP), R9
	MOVQ   x+16(FP), SI
	MOVQ   stride+24(FP), R8
	MOVQ   w+32(FP), DI
	MOVQ   k4+40(FP), CX
	FOUR_ROWS
	VPXORQ Z0, Z0, Z0
	VPXORQ Z1, Z1, Z1
	VPXORQ Z2, Z2, Z2
	VPXORQ Z3, Z3, Z3
	VPXORQ Z4, Z4, Z4
	VPXORQ Z5, Z5, Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7

four:
	VMOVDQU32    (DI), Z8
	VMOVDQU32    64(DI), Z9
	VPBROADCASTD (SI), Z10
	VPBROADCASTD (R10), Z11
	VPBROADCASTD (R11), Z12
	VPBROADCASTD (R12), Z13
	VPDPBUSD     Z8, Z10, Z0
	VPDPBUSD     Z9, Z10, Z1
	VPDPBUSD     Z8, Z11, Z2
	VPDPBUSD     Z9, Z11, Z3
	VPDPBUSD     Z8, Z12, Z4
	VPDPBUSD     Z9, Z12, Z5
	VPDPBUSD     Z8, Z13, Z6
	VPDPBUSD     Z9, Z13, Z7
	ADDQ         $128, DI
	NEXT_FOUR_BYTES
	DECQ         CX
	JNZ          four

	VMOVDQU32 Z0, (DX)
	VMOVDQU32 Z1, 64(DX)
	ADDQ      R9, DX
	VMOVDQU32 Z2, (DX)
	VMOVDQU32 Z3, 64(DX)
	ADDQ      R9, DX
	VMOVDQU32 Z4, (DX)
	VMOVDQU32 Z5, 64(DX)
	ADDQ      R9, DX
	VMOVDQU32 Z6, (DX)
	VMOVDQU32 Z7, 64(DX)
	VZEROUPPER
	RET

// One row of the four bytes at AT, against the weights' even bytes in Y8 and Y10 and their odd ones in Y9 and Y11.
#define DOT(AT, A, B) \
	VPBROADCASTD AT, Y13; \
	VPAND        Y15, Y13, Y12; \
	VPSRLW       $8, Y13, Y13; \
	VPMADDWD     Y8, Y12, Y14; \
	VPADDD       Y14, A, A; \
	VPMADDWD     Y9, Y13, Y14; \
	VPADDD       Y14, A, A; \
	VPMADDWD     Y10, Y12, Y14; \
	VPADDD       Y14, B, B; \
	VPMADDWD     Y11, Y13, Y14; \
	VPADDD       Y14, B, B

// func matrixAVX2(y *int32, yStride int, x *uint8, stride int, w *int8, k4 int)
// Bytes become words before they are multiplied: VPMADDUBSW would cut sums off.
TEXT ·matrixAVX2(SB), NOSPLIT, $0-48
	MOVQ     yStride+8(FP), R9
	MOVQ     stride+24(FP), R8
	MOVQ     $0, BX
	VPCMPEQW Y15, Y15, Y15
	VPSRLW   $8, Y15, Y15

half:
	MOVQ  y+0(FP), DX
	ADDQ  BX, DX
	MOVQ  x+16(FP), SI
	FOUR_ROWS
	MOVQ  w+32(FP), DI
	ADDQ  BX, DI
	MOVQ  k4+40(FP), CX
	CLEAR

bytes:
	VMOVDQU (DI), Y9
	VMOVDQU 32(DI), Y11
	VPSLLW  $8, Y9, Y8
	VPSRAW  $8, Y8, Y8
	VPSRAW  $8, Y9, Y9
	VPSLLW  $8, Y11, Y10
	VPSRAW  $8, Y10, Y10
	VPSRAW  $8, Y11, Y11
	DOT((SI), Y0, Y1)
	DOT((R10), Y2, Y3)
	DOT((R11), Y4, Y5)
	DOT((R12), Y6, Y7)
	ADDQ    $128, DI
	NEXT_FOUR_BYTES
	DECQ    CX
	JNZ     bytes

	STORE
	ADDQ    $64, BX
	CMPQ    BX, $128
	JNE     half
	VZEROUPPER
	RET

#define ROW(AT, A, B) \
	VBROADCASTSS AT, Y10; \
	VMULPS       Y8, Y10, Y11; \
	VADDPS       Y11, A, A; \
	VMULPS       Y9, Y10, Y12; \
	VADDPS       Y12, B, B

// func matrixFloatAVX2(y *float32, yStride int, x *float32, stride int, w *float32, k int)
TEXT ·matrixFloatAVX2(SB), NOSPLIT, $0-48
	MOVQ   y+0(FP), DX
	MOVQ   yStride+8(FP), R9
	MOVQ   x+16(FP), SI
	MOVQ   stride+24(FP), R8
	MOVQ   w+32(FP), DI
	MOVQ   k+40(FP), CX
	FOUR_ROWS
	CLEAR

one:
	VMOVUPS (DI), Y8
	VMOVUPS 32(DI), Y9
	ROW((SI), Y0, Y1)
	ROW((R10), Y2, Y3)
	ROW((R11), Y4, Y5)
	ROW((R12), Y6, Y7)
	ADDQ    $64, DI
	NEXT_FOUR_BYTES
	DECQ    CX
	JNZ     one

	STORE
	VZEROUPPER
	RET

// func boundsAVX2(x *float32, n int) (low, high float32)
TEXT ·boundsAVX2(SB), NOSPLIT, $0-24
	MOVQ   x+0(FP), SI
	MOVQ   n+8(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1

eight:
	VMOVUPS (SI), Y2
	VMINPS  Y2, Y0, Y0
	VMAXPS  Y2, Y1, Y1
	ADDQ    $32, SI
	SUBQ    $8, CX
	JNZ     eight

	VEXTRACTF128 $1, Y0, X2
	VMINPS       X2, X0, X0
	VPSHUFD      $0x0e, X0, X2
	VMINPS       X2, X0, X0
	VPSHUFD      $0x01, X0, X2
	VMINSS       X2, X0, X0
	VEXTRACTF128 $1, Y1, X2
	VMAXPS       X2, X1, X1
	VPSHUFD      $0x0e, X1, X2
	VMAXPS       X2, X1, X1
	VPSHUFD      $0x01, X1, X2
	VMAXSS       X2, X1, X1
	VMOVSS       X0, low+16(FP)
	VMOVSS       X1, high+20(FP)
	VZEROUPPER
	RET

// func quantiseAVX2(q *uint8, x *float32, n int, inverse, offset float32)
TEXT ·quantiseAVX2(SB), NOSPLIT, $0-32
	MOVQ         q+0(FP), DI
	MOVQ         x+8(FP), SI
	MOVQ         n+16(FP), CX
	VBROADCASTSS inverse+24(FP), Y4
	VBROADCASTSS offset+28(FP), Y5

eight:
	VMULPS       (SI), Y4, Y0
	VADDPS       Y5, Y0, Y0
	VCVTTPS2DQ   Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPACKSSDW    X1, X0, X0
	VPACKUSWB    X0, X0, X0
	VMOVQ        X0, (DI)
	ADDQ         $32, SI
	ADDQ         $8, DI
	SUBQ         $8, CX
	JNZ          eight
	VZEROUPPER
	RET

// func dequantiseAVX2(y *float32, acc *int32, sums, scales, bias *float32, n int, unit, zero float32)
TEXT ·dequantiseAVX2(SB), NOSPLIT, $0-56
	MOVQ         y+0(FP), DI
	MOVQ         acc+8(FP), SI
	MOVQ         sums+16(FP), R8
	MOVQ         scales+24(FP), R9
	MOVQ         bias+32(FP), R10
	MOVQ         n+40(FP), CX
	VBROADCASTSS unit+48(FP), Y4
	VBROADCASTSS zero+52(FP), Y5
	XORQ         AX, AX

eight:
	VCVTDQ2PS (SI)(AX*4), Y0
	VMULPS    (R8)(AX*4), Y5, Y1
	VSUBPS    Y1, Y0, Y0
	VMULPS    Y4, Y0, Y0
	VMULPS    (R9)(AX*4), Y0, Y0
	VADDPS    (R10)(AX*4), Y0, Y0
	VMOVUPS   Y0, (DI)(AX*4)
	ADDQ      $8, AX
	CMPQ      AX, CX
	JLT       eight
	VZEROUPPER
	RET

// func geluAVX2(x *float32, n int)
TEXT ·geluAVX2(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX

eight:
	VMOVUPS (DI), Y4
	VMULPS  Y4, Y4, Y0
	VMULPS  Y4, Y0, Y0
	VMULPS  CUBE, Y0, Y0
	VADDPS  Y4, Y0, Y0
	VMULPS  SLOPE, Y0, Y0
	EXP
	VADDPS  ONE, Y0, Y0
	VDIVPS  Y0, Y4, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     eight
	VZEROUPPER
	RET

// func addNormAVX2(x, y, gain, shift *float32, n int, size float32)
TEXT ·addNormAVX2(SB), NOSPLIT, $0-44
	MOVQ   x+0(FP), DI
	MOVQ   y+8(FP), SI
	MOVQ   gain+16(FP), R8
	MOVQ   shift+24(FP), R9
	MOVQ   n+32(FP), CX
	VMOVSS size+40(FP), X6
	VXORPS Y0, Y0, Y0
	XORQ   AX, AX

sum:
	VMOVUPS (DI)(AX*4), Y2
	VADDPS  (SI)(AX*4), Y2, Y2
	VMOVUPS Y2, (DI)(AX*4)
	VADDPS  Y2, Y0, Y0
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     sum
	FOLD
	VDIVSS       X6, X0, X0
	VBROADCASTSS X0, Y4
	VXORPS       Y0, Y0, Y0
	XORQ         AX, AX

square:
	VMOVUPS (DI)(AX*4), Y2
	VSUBPS  Y4, Y2, Y2
	VMOVUPS Y2, (DI)(AX*4)
	VMULPS  Y2, Y2, Y2
	VADDPS  Y2, Y0, Y0
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     square
	FOLD
	VDIVSS       X6, X0, X0
	VADDSS       TINY, X0, X0
	VSQRTSS      X0, X0, X0
	VMOVSS       ONE, X1
	VDIVSS       X0, X1, X0
	VBROADCASTSS X0, Y4
	XORQ         AX, AX

scale:
	VMULPS  (DI)(AX*4), Y4, Y2
	VMULPS  (R8)(AX*4), Y2, Y2
	VADDPS  (R9)(AX*4), Y2, Y2
	VMOVUPS Y2, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     scale
	VZEROUPPER
	RET

// func softmaxAVX2(x *float32, n int, scale float32)
TEXT ·softmaxAVX2(SB), NOSPLIT, $0-20
	MOVQ         x+0(FP), DI
	MOVQ         n+8(FP), CX
	VBROADCASTSS scale+16(FP), Y7
	VMOVUPS      (DI), Y0
	XORQ         AX, AX

top:
	VMAXPS (DI)(AX*4), Y0, Y0
	ADDQ   $8, AX
	CMPQ   AX, CX
	JLT    top
	VEXTRACTF128 $1, Y0, X1
	VMAXPS       X1, X0, X0
	VPSHUFD      $0x0e, X0, X1
	VMAXPS       X1, X0, X0
	VPSHUFD      $0x01, X0, X1
	VMAXSS       X1, X0, X0
	VBROADCASTSS X0, Y6
	VXORPS       Y5, Y5, Y5
	XORQ         AX, AX

power:
	VMOVUPS (DI)(AX*4), Y0
	VSUBPS  Y6, Y0, Y0
	VMULPS  Y7, Y0, Y0
	EXP
	VMOVUPS Y0, (DI)(AX*4)
	VADDPS  Y0, Y5, Y5
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     power
	VMOVAPS Y5, Y0
	FOLD
	VMOVSS       ONE, X1
	VDIVSS       X0, X1, X0
	VBROADCASTSS X0, Y4
	XORQ         AX, AX

divide:
	VMULPS  (DI)(AX*4), Y4, Y0
	VMOVUPS Y0, (DI)(AX*4)
	ADDQ    $8, AX
	CMPQ    AX, CX
	JLT     divide
	VZEROUPPER
	RET
